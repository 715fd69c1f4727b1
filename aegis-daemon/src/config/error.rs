//! What can be wrong with a configuration.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::paths::PathsError;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file's content is wrong; one line per problem.
    #[error("{}", lines(path, problems))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Every problem found, in the file's order.
        problems: Vec<Problem>,
    },
    /// The usual directories cannot be used.
    #[error(transparent)]
    Paths(#[from] PathsError),
}

/// One problem in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line from 1; 0 where it concerns no single line.
    pub line: usize,
    /// The key with its table, `scheduler.first_lease`; empty for syntax errors.
    pub key: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.key, self.message)
        }
    }
}

fn lines(path: &std::path::Path, problems: &[Problem]) -> String {
    let mut text = String::new();
    for problem in problems {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&path.display().to_string());
        if problem.line > 0 {
            text.push_str(&format!(":{}", problem.line));
        }
        text.push_str(&format!(": {problem}"));
    }
    text
}
