//! The file an attempt's output is in, opened with the rights of whoever asks.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use aegis_common::wire::{Attempt, ErrorCode, Failure, JobView};
use rustix::fs::{Mode, OFlags};

use super::error::{failure, hinted};
use super::render::shell;

/// Where the attempt's log is.
pub(super) fn path(attempt: &Attempt) -> PathBuf {
    Path::new(OsStr::from_bytes(&attempt.log.0)).to_owned()
}

/// Opens the attempt's log.
pub(super) fn open(job: &JobView, attempt: &Attempt) -> Result<File, Failure> {
    open_regular(&path(attempt)).map_err(|error| unreadable(job, attempt, &error))
}

/// The owner may have put a FIFO or a device in its place: opening must neither hang nor act.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// Why a log cannot be read, by whose it is.
pub(super) fn unreadable(job: &JobView, attempt: &Attempt, error: &io::Error) -> Failure {
    let path = shell::word(&attempt.log.0);
    let owner = job
        .user
        .clone()
        .unwrap_or_else(|| format!("uid {}", job.uid));
    match error.kind() {
        io::ErrorKind::PermissionDenied => hinted(
            ErrorCode::Forbidden,
            format!(
                "you may not read the log of job {}, which belongs to {owner}: {path}",
                job.id
            ),
            format!("ask {owner} for it, or read it as root"),
        ),
        io::ErrorKind::NotFound => failure(
            ErrorCode::NotFound,
            format!("the log of job {} is gone: {path}", job.id),
        ),
        _ => failure(
            ErrorCode::NotFound,
            format!("cannot read the log {path}: {error}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_in_the_logs_place_does_not_hang() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("log");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(open_regular(&fifo).is_err());
        assert!(open_regular(dir.path()).is_err());
    }
}
