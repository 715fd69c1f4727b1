//! Errors of the simulated machine.

use std::path::PathBuf;

/// Result with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a simulated machine cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the driver directory could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The configuration is not valid.
    #[error("machine configuration: {0}")]
    Config(String),
    /// `config.json` or a journal line is not what this version writes.
    #[error("{}: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// `simgpu.state` was made by another version.
    #[error("{}: not a state file of this version of simgpu-core", .0.display())]
    Version(PathBuf),
    /// All process slots are taken by live processes.
    #[error(
        "more than {} processes use the simulated machine",
        crate::layout::MAX_PROCESSES
    )]
    TooManyProcesses,
    /// A GPU index beyond the machine's.
    #[error("the simulated machine has no GPU {0}")]
    NoGpu(usize),
}

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
