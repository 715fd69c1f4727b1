//! The journal and the job records, in one SQLite database.
//!
//! The owner appends every event the scheduler core sees and commits before it carries out the
//! core's actions. A commit is one transaction and one fsync. What cannot be written (full disk)
//! stays queued in memory, in order, and goes out with the next commit that succeeds.
//!
//! ```text
//!   append, put_job, put_final --> pending (memory) --commit--> aegis.db (WAL, synchronous=FULL)
//!   snapshot: the core's whole state; the journal before the previous snapshot is pruned
//!   recover:  newest snapshot + the events after it
//! ```
#![forbid(unsafe_code)]

mod error;
mod learned;
#[cfg(test)]
mod learned_tests;
mod open;
mod past;
mod pending;
mod record;
mod recover;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use aegis_common::action::Action;
use aegis_common::event::Stamped;
use aegis_common::id::JobId;
use aegis_common::wire::JobView;
use rusqlite::{Connection, OptionalExtension, params};
use serde::de::DeserializeOwned;

pub use error::StoreError;
pub use learned::{LearnedCommand, LearnedKey};
pub use past::PastJobs;
use pending::Write;
pub use record::JobRecord;
pub(crate) use record::digits;
pub use recover::Recovery;

/// The open database. There is one per state directory; a second opener is refused.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// Not yet on disk, in order.
    pending: Vec<Write>,
    /// Bytes of JSON in `pending`.
    pending_bytes: usize,
    /// The journal's next sequence number.
    next_seq: i64,
    /// The next job's number.
    next_job: u64,
}

impl Store {
    /// Opens the database, creating it (mode 0600) if there is none.
    ///
    /// # Errors
    /// A file that is damaged, foreign, newer than this program or in use is refused and left as
    /// it is; the message names the ways out.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = open::open(path)?;
        let failed = |error| StoreError::from_sqlite(path, error);
        let next_seq = connection
            .query_row(
                "SELECT max(ifnull((SELECT max(seq) FROM journal), 0),
                            ifnull((SELECT max(seq) FROM snapshot), 0)) + 1",
                [],
                |row| row.get(0),
            )
            .map_err(failed)?;
        let next_job: i64 = connection
            .query_row(
                "SELECT value FROM counter WHERE name = 'next_job'",
                [],
                |row| row.get(0),
            )
            .map_err(failed)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
            pending: Vec::new(),
            pending_bytes: 0,
            next_seq,
            next_job: u64::try_from(next_job)
                .map_err(|_| StoreError::damaged(path, format!("the job counter is {next_job}")))?,
        })
    }

    /// Where the database is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds an event, and what the core answered to it, to the journal's open transaction. The
    /// answer is kept so that a replay can be checked against it.
    ///
    /// # Errors
    /// Only if they cannot be represented as JSON.
    pub fn append(&mut self, event: &Stamped, actions: &[Action]) -> Result<(), StoreError> {
        let json = self.to_json("event", event)?;
        let actions = self.to_json("actions", &actions)?;
        let seq = self.next_seq;
        self.next_seq += 1;
        self.queue(Write::Event {
            seq,
            at: event.at,
            json,
            actions,
        });
        Ok(())
    }

    /// Adds a job's record to the open transaction.
    ///
    /// # Errors
    /// Only if the record cannot be represented as JSON.
    pub fn put_job(&mut self, record: &JobRecord) -> Result<(), StoreError> {
        let json = self.to_json("job record", record)?;
        self.queue(Write::Job {
            id: record.id,
            uid: record.uid,
            json,
        });
        Ok(())
    }

    /// Adds a finished job's last view to the open transaction.
    ///
    /// # Errors
    /// Only if the view cannot be represented as JSON.
    pub fn put_final(&mut self, view: &JobView) -> Result<(), StoreError> {
        let json = self.to_json("job view", view)?;
        self.queue(Write::Final {
            id: view.id,
            uid: view.uid,
            ended: view.ended.unwrap_or(view.submitted),
            json,
        });
        Ok(())
    }

    /// The next job's number. It is used up at once, and for good with the next commit.
    pub fn next_job_id(&mut self) -> JobId {
        let id = JobId(self.next_job);
        self.next_job = self.next_job.saturating_add(1);
        self.queue(Write::NextJob {
            next: self.next_job,
        });
        id
    }

    /// Starts a new epoch: stores the core's state as of the last append, prunes the journal
    /// before the previous snapshot, and commits.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn snapshot(&mut self, core_json: &str) -> Result<(), StoreError> {
        self.queue(Write::Snapshot {
            seq: self.next_seq - 1,
            json: core_json.to_owned(),
        });
        self.commit()
    }

    /// Makes everything queued durable: one transaction, one fsync. Does nothing if nothing is
    /// queued.
    ///
    /// # Errors
    /// The database could not be written. Everything stays queued and in order; the next call
    /// tries again. Rows carry their own keys, so a commit that failed after it had taken effect
    /// doubles nothing.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        pending::write_all(&mut self.connection, &self.pending)
            .map_err(|error| StoreError::from_sqlite(&self.path, error))?;
        self.pending.clear();
        self.pending_bytes = 0;
        crate::failpoint::hit("store.committed");
        Ok(())
    }

    /// Bytes of JSON not yet on disk. Grows while commits fail; the owner may then leave out what
    /// is not durable.
    #[must_use]
    pub const fn backlog(&self) -> usize {
        self.pending_bytes
    }

    /// A job's record, committed or not.
    ///
    /// # Errors
    /// The database cannot be read or the record cannot be parsed.
    pub fn job_record(&self, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        let queued = self.pending.iter().rev().find_map(|write| match write {
            Write::Job { id: of, json, .. } if *of == id => Some(json.clone()),
            _ => None,
        });
        self.one(
            "job record",
            "SELECT json FROM job WHERE id = ?1",
            id,
            queued,
        )
    }

    /// A finished job's last view, committed or not.
    ///
    /// # Errors
    /// The database cannot be read or the view cannot be parsed.
    pub fn final_view(&self, id: JobId) -> Result<Option<JobView>, StoreError> {
        let queued = self.pending.iter().rev().find_map(|write| match write {
            Write::Final { id: of, json, .. } if *of == id => Some(json.clone()),
            _ => None,
        });
        self.one(
            "job view",
            "SELECT json FROM final WHERE id = ?1",
            id,
            queued,
        )
    }

    /// At most `limit` finished jobs, newest first, all users' or one's. Committed ones only.
    ///
    /// # Errors
    /// The database cannot be read or a view cannot be parsed.
    pub fn finished(&self, uid: Option<u32>, limit: u32) -> Result<Vec<JobView>, StoreError> {
        let failed = |error| StoreError::from_sqlite(&self.path, error);
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT json FROM final WHERE ?1 IS NULL OR uid = ?1
                 ORDER BY ended DESC, id DESC LIMIT ?2",
            )
            .map_err(failed)?;
        let rows = statement
            .query_map(params![uid, limit], |row| row.get::<_, String>(0))
            .map_err(failed)?;
        rows.map(|json| self.parse("job view", &json.map_err(failed)?))
            .collect()
    }

    fn one<T: DeserializeOwned>(
        &self,
        what: &'static str,
        sql: &str,
        id: JobId,
        queued: Option<String>,
    ) -> Result<Option<T>, StoreError> {
        let json = match queued {
            Some(json) => Some(json),
            None => self
                .connection
                .prepare_cached(sql)
                .and_then(|mut statement| {
                    statement
                        .query_row([pending::integer(id.0)], |row| row.get(0))
                        .optional()
                })
                .map_err(|error| StoreError::from_sqlite(&self.path, error))?,
        };
        json.map(|json: String| self.parse(what, &json)).transpose()
    }

    fn parse<T: DeserializeOwned>(&self, what: &str, json: &str) -> Result<T, StoreError> {
        serde_json::from_str(json)
            .map_err(|error| StoreError::damaged(&self.path, format!("a {what}: {error}")))
    }

    fn to_json<T: serde::Serialize>(
        &self,
        what: &'static str,
        value: &T,
    ) -> Result<String, StoreError> {
        serde_json::to_string(value).map_err(|error| StoreError::Encode { what, error })
    }

    fn queue(&mut self, write: Write) {
        self.pending_bytes += write.bytes();
        self.pending.push(write);
    }
}
