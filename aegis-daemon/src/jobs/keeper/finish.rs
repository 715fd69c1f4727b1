//! The end record.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Instant;

use aegis_common::job::Exit;
use rustix::process::getpid;

use super::super::record::{End, EndRecord, RECORD_VERSION, now};
use super::number;
use super::serve::{Keeper, SLOWEST_RETRY};
use crate::sys::process;

impl Keeper {
    /// What there is to record, now that nobody is left.
    pub(super) fn end_record(&mut self) -> EndRecord {
        self.read_report();
        let (exit, main_ended) = self.main_end.unwrap_or((Exit::Unknown, now()));
        let usage = process::children_usage();
        EndRecord {
            version: RECORD_VERSION,
            job: self.order.job,
            attempt: self.order.attempt,
            end: if self.start_error.is_empty() {
                End::Exited { exit }
            } else {
                let error = String::from_utf8_lossy(&self.start_error).into_owned();
                End::StartFailed { error }
            },
            main_ended,
            ended: now(),
            user_ms: usage.user_ms,
            system_ms: usage.system_ms,
            max_rss_kib: usage.max_rss_kib,
        }
    }

    /// Makes the end record if it is due; `None` while there is none. A full disk is tried again as
    /// long as it takes; until then `status` has the answer.
    pub(super) fn try_to_record(&mut self) -> Option<Recorded> {
        let (record, due, delay) = self.end.as_ref()?;
        if Instant::now() < *due {
            return None;
        }
        match self.write_record(record) {
            Ok(file) => return Some(Recorded(Some(file))),
            // Somebody removed the job's directory: there is no place left to look for a record.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(Recorded(None)),
            Err(_) => {}
        }
        let next = (Instant::now() + *delay, (*delay * 2).min(SLOWEST_RETRY));
        if let Some((_, due, delay)) = &mut self.end {
            (*due, *delay) = next;
        }
        None
    }

    /// Waits until the record is on disk. What the disk refuses now cannot be helped: the blocks
    /// were reserved, so it is not for lack of room.
    pub(super) fn sync(&self, record: Recorded) {
        if let Some(file) = record.0 {
            let _ = file.sync_all();
            let _ = File::open(self.layout.job(self.order.job)).and_then(|job| job.sync_all());
        }
    }

    fn write_record(&self, record: &EndRecord) -> io::Result<File> {
        let (job, attempt) = (self.order.job, self.order.attempt);
        let reserved = self.layout.reserved_end(job, attempt, number(getpid()));
        let bytes = serde_json::to_vec(record)?;
        // Not truncated first: that would give the reserved blocks away.
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&reserved)?;
        file.write_all(&bytes)?;
        file.set_len(u64::try_from(bytes.len()).unwrap_or(u64::MAX))?;
        std::fs::rename(&reserved, self.layout.end_record(job, attempt))?;
        Ok(file)
    }
}

/// An end record that has its name, unless it has lost its place.
#[derive(Debug)]
pub(super) struct Recorded(Option<File>);
