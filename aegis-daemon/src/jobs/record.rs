//! The start and end records of an attempt: the files that make "ran once" and "how it ended"
//! survive any crash.

use std::io::ErrorKind;
use std::path::Path;

use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use aegis_common::job::Exit;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Raised when older daemons cannot read the records any more.
pub(crate) const RECORD_VERSION: u32 = 1;

/// Says that the attempt's command runs or ran, and under which keeper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartRecord {
    pub(crate) version: u32,
    pub(crate) job: JobId,
    pub(crate) attempt: u32,
    pub(crate) uid: u32,
    pub(crate) gpus: Vec<GpuIndex>,
    #[serde(with = "crate::store::digits")]
    pub(crate) token: [u8; 32],
    /// `/proc/sys/kernel/random/boot_id`: pids mean nothing after a reboot.
    pub(crate) boot_id: String,
    pub(crate) keeper: ProcessKey,
    /// The socket's name in `RUNTIME/keepers`; it listens already.
    pub(crate) socket: String,
    pub(crate) at: Moment,
}

/// Says how the attempt ended. Its process tree is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndRecord {
    pub(crate) version: u32,
    pub(crate) job: JobId,
    pub(crate) attempt: u32,
    pub(crate) end: End,
    /// When the main process ended.
    pub(crate) main_ended: Moment,
    /// When the last of the tree was gone.
    pub(crate) ended: Moment,
    /// Processor time of the whole tree, milliseconds.
    pub(crate) user_ms: u64,
    /// Kernel time of the whole tree, milliseconds.
    pub(crate) system_ms: u64,
    /// Largest resident set of any one process, KiB.
    pub(crate) max_rss_kib: u64,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub(crate) enum End {
    /// The command ran.
    Exited { exit: Exit },
    /// It could not be started.
    StartFailed { error: String },
}

/// A record cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("{path}: {error}")]
    Io { path: String, error: std::io::Error },
    #[error("{path} is damaged: {error}")]
    Damaged {
        path: String,
        error: serde_json::Error,
    },
}

/// Reads a record; `None` if there is none.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, RecordError> {
    let name = || path.display().to_string();
    match std::fs::read(path) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| RecordError::Damaged {
                    path: name(),
                    error,
                })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RecordError::Io {
            path: name(),
            error,
        }),
    }
}

/// This boot's identity.
pub(crate) fn boot_id() -> std::io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned())
}

/// The wall clock.
pub(crate) fn now() -> Moment {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Moment(since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }))
}

#[cfg(test)]
mod tests {
    use super::{EndRecord, StartRecord, read};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_record_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &bytes).unwrap();
            prop_assert!(read::<StartRecord>(file.path()).is_err());
            prop_assert!(read::<EndRecord>(file.path()).is_err());
        }
    }

    #[test]
    fn no_file_is_no_record() {
        let directory = tempfile::tempdir().unwrap();
        assert!(
            read::<StartRecord>(&directory.path().join("1.start"))
                .unwrap()
                .is_none()
        );
    }
}
