//! `cargo xtask lint`: everything that can be said about the code without running it.
//!
//! Every check runs even if an earlier one failed; the end lists what did.

mod deny;
mod gates;
mod layers;
mod length;
mod panics;
mod rust;
mod source;
mod suppress;
mod unsafety;

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::setup;
use crate::workspace::{root, rust_files};
use source::Source;

/// Options of `lint`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only the checks of this name (see the `lint:` lines)
    check: Vec<String>,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// File, relative to the root; the whole repository if `None`.
    pub(crate) path: Option<PathBuf>,
    /// From 1; 0: the whole file.
    pub(crate) line: usize,
    /// The rule and how to obey it.
    pub(crate) message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}", path.display())?;
            if self.line > 0 {
                write!(f, ":{}", self.line)?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}

/// A check over the parsed sources.
type SourceCheck = fn(&[Source]) -> Vec<Violation>;
/// A check that runs a program.
type ProgramCheck = fn() -> Result<Vec<Violation>>;

const SOURCE_CHECKS: [(&str, SourceCheck); 5] = [
    ("length", length::check),
    ("unsafe", unsafety::check),
    ("layers", layers::check),
    ("panics", panics::check),
    ("suppress", suppress::check),
];

const PROGRAM_CHECKS: [(&str, ProgramCheck); 5] = [
    ("fmt", rust::fmt),
    ("clippy", rust::clippy),
    ("rustdoc", rust::rustdoc),
    ("deny", deny::check),
    ("gates", gates::check),
];

/// `cargo xtask lint`.
///
/// # Errors
/// A check failed or could not run.
pub(crate) fn run(options: &Options) -> Result<()> {
    let known = SOURCE_CHECKS
        .iter()
        .map(|(name, _)| *name)
        .chain(PROGRAM_CHECKS.iter().map(|(name, _)| *name));
    let known: Vec<&str> = known.collect();
    if let Some(unknown) = options.check.iter().find(|c| !known.contains(&c.as_str())) {
        bail!(
            "no check is called `{unknown}`; there are {}",
            known.join(", ")
        );
    }
    let wanted = |name: &str| options.check.is_empty() || options.check.iter().any(|c| c == name);
    setup::prepare(setup::Verb::Lint, true)?;
    let sources = sources()?;
    let mut failed = Vec::new();
    for (name, check) in SOURCE_CHECKS {
        if wanted(name) {
            report(name, Ok(check(&sources)), &mut failed);
        }
    }
    for (name, check) in PROGRAM_CHECKS {
        if wanted(name) {
            report(name, check(), &mut failed);
        }
    }
    if !failed.is_empty() {
        bail!("lint failed: {}", failed.join(", "));
    }
    println!("lint: all checks passed");
    Ok(())
}

fn report(name: &'static str, result: Result<Vec<Violation>>, failed: &mut Vec<&'static str>) {
    match result {
        Ok(violations) if violations.is_empty() => println!("lint: {name}: ok"),
        Ok(violations) => {
            for violation in &violations {
                println!("lint: {name}: {violation}");
            }
            failed.push(name);
        }
        Err(error) => {
            println!("lint: {name}: {error:#}");
            failed.push(name);
        }
    }
}

fn sources() -> Result<Vec<Source>> {
    rust_files(root())
        .context("cannot list the sources")?
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let relative = path.strip_prefix(root()).unwrap_or(&path).to_owned();
            Source::parse(relative, &text)
        })
        .collect()
}
