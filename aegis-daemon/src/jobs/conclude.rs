//! What the records of a watched attempt say, and telling the owner.

use std::io;

use aegis_common::job::Exit;

use super::keepers::KeeperEvent;
use super::record::{self, End, EndRecord, RecordError, StartRecord};
use super::supervise::{READ_AGAIN, Supervisor};
use super::tree::Process;
use super::{adopt, followed, leftovers};

impl Supervisor {
    /// Reports the end of an attempt whose keeper is gone.
    pub(super) async fn conclude(mut self) {
        let Some(start) = self.start_record().await else {
            return self.report_start_failed(
                "the keeper ended before it could start the command".to_owned(),
            );
        };
        if !self.conclude_recorded().await {
            leftovers::end(|| self.left()).await;
            adopt::tidy(&self.layout, &start);
            self.report_ended(&start, Exit::Unknown);
        }
    }

    /// The attempt's processes that live: by the job's token in their environment, and by the
    /// kernel's set, which knows those that cleared theirs.
    fn left(&self) -> io::Result<Vec<Process>> {
        let mut left = leftovers::find(&self.token)?;
        if let Some(lifecycle) = &self.lifecycle {
            left.extend(followed::find(lifecycle, (self.job, self.attempt)));
        }
        Ok(left)
    }

    /// Reports the end if it was recorded.
    pub(super) async fn conclude_recorded(&mut self) -> bool {
        let path = self.layout.end_record(self.job, self.attempt);
        let Some(record) = self.read::<EndRecord>(&path).await else {
            return false;
        };
        match (record.end, self.start_record().await) {
            (End::StartFailed { error }, _) => self.report_start_failed(error),
            (End::Exited { exit }, Some(start)) => self.report_ended(&start, exit),
            (End::Exited { .. }, None) => return false,
        }
        true
    }

    fn report_ended(&mut self, start: &StartRecord, exit: Exit) {
        // Another start of this attempt is to be told so, too.
        self.requests.close();
        self.report_started(start);
        self.send(KeeperEvent::Ended {
            job: self.job,
            attempt: self.attempt,
            exit,
        });
    }

    pub(super) async fn start_record(&self) -> Option<StartRecord> {
        let path = self.layout.start_record(self.job, self.attempt);
        self.read(&path).await
    }

    /// Reads a record; tries again while the system refuses. A damaged one counts as none.
    async fn read<T: serde::de::DeserializeOwned>(&self, path: &std::path::Path) -> Option<T> {
        loop {
            match record::read(path) {
                Ok(record) => return record,
                Err(error @ RecordError::Damaged { .. }) => {
                    tracing::error!("{error}");
                    return None;
                }
                Err(error) => {
                    tracing::error!("{error}; trying again");
                    tokio::time::sleep(READ_AGAIN).await;
                }
            }
        }
    }

    pub(super) fn report_started(&mut self, record: &StartRecord) {
        if !std::mem::replace(&mut self.started, true) {
            self.send(KeeperEvent::Started {
                job: self.job,
                attempt: self.attempt,
                gpus: record.gpus.clone(),
            });
        }
    }

    pub(super) fn report_start_failed(&self, error: String) {
        self.send(KeeperEvent::StartFailed {
            job: self.job,
            attempt: self.attempt,
            error,
        });
    }

    fn send(&self, event: KeeperEvent) {
        // Without an owner the daemon is ending; the records stay.
        let _ = self.events.send(event);
    }
}
