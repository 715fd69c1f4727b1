//! What can go wrong with the database, and the ways out.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// The database cannot be used or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Not a database, truncated, or contents that make no sense. The file was not changed.
    #[error(
        "the database {0} is damaged: {problem}. It was left as it is. Ways out: put back a backup \
         of it and its -wal file, or move both away: mv '{0}' '{0}.damaged'; \
         mv '{0}-wal' '{0}.damaged-wal'; jobs still running are then adopted but the queue is lost",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A database of another program.
    #[error(
        "{} is a database of another program (application id {found:#x}): it was left as it is. \
         Point state_dir elsewhere or move the file away", path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its application id.
        found: i32,
    },
    /// Written by a newer version.
    #[error(
        "the database {} has format {found}; this aegisd knows up to {known}: it was left as it is. \
         Install the newer aegisd again", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i32,
        /// The newest format known here.
        known: i32,
    },
    /// Another process has it open.
    #[error("the database {} is in use: is another aegisd running on it?", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The disk is full. Nothing queued is lost.
    #[error("the disk of {} is full: nothing is started or accepted until there is room", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file or its directory cannot be reached.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// Any other error of SQLite's.
    #[error("the database {}: {error}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        error: rusqlite::Error,
    },
    /// A value has no JSON form.
    #[error("cannot write a {what} as JSON: {error}")]
    Encode {
        /// The kind of value.
        what: &'static str,
        /// The serializer's error.
        error: serde_json::Error,
    },
}

impl StoreError {
    pub(super) fn damaged(path: &Path, problem: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }

    pub(super) fn io(path: &Path, error: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            error,
        }
    }

    pub(super) fn from_sqlite(path: &Path, error: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Self::Damaged {
                path,
                problem: error.to_string(),
            },
            _ => Self::Sqlite { path, error },
        }
    }
}
