//! What a starting daemon finds in the journal.

use aegis_common::event::Stamped;
use aegis_common::id::JobId;
use rusqlite::OptionalExtension;

use super::{Store, StoreError};

/// The journal's contents.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovery {
    /// The core's state at the last epoch; `None` if there was none yet.
    pub snapshot: Option<String>,
    /// What the core saw since, in order.
    pub events: Vec<Stamped>,
    /// The next job's number.
    pub next_job: JobId,
}

impl Store {
    /// Reads the newest snapshot and the events after it, committed ones only.
    ///
    /// # Errors
    /// The database cannot be read, an event cannot be parsed, or one is missing.
    pub fn recover(&self) -> Result<Recovery, StoreError> {
        let failed = |error| StoreError::from_sqlite(&self.path, error);
        let snapshot: Option<(i64, String)> = self
            .connection
            .query_row(
                "SELECT seq, json FROM snapshot ORDER BY seq DESC LIMIT 1",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
            .map_err(failed)?;
        let (after, snapshot) = match snapshot {
            Some((seq, json)) => (seq, Some(json)),
            None => (0, None),
        };
        let mut statement = self
            .connection
            .prepare("SELECT seq, json FROM journal WHERE seq > ?1 ORDER BY seq")
            .map_err(failed)?;
        let rows = statement
            .query_map([after], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
            })
            .map_err(failed)?;
        let mut events = Vec::new();
        for (expected, row) in (after + 1..).zip(rows) {
            let (seq, json) = row.map_err(failed)?;
            if seq != expected {
                return Err(StoreError::damaged(
                    &self.path,
                    format!("event {expected} of the journal is missing"),
                ));
            }
            let event = serde_json::from_str(&json).map_err(|error| {
                StoreError::damaged(&self.path, format!("event {seq} of the journal: {error}"))
            })?;
            events.push(event);
        }
        Ok(Recovery {
            snapshot,
            events,
            next_job: JobId(self.next_job),
        })
    }
}
