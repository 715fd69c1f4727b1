//! Finished jobs as a trace needs them; also from the file of a daemon that does not run.

use std::path::Path;

use aegis_common::id::{JobId, Moment};
use aegis_common::job::{JobState, Outcome};
use aegis_common::wire::{JobView, PastJob};
use rusqlite::params;

use super::pending::integer;
use super::{Store, StoreError, open};
use crate::learning::Command;

/// Which finished jobs.
#[derive(Clone, Copy, Debug)]
pub struct PastJobs {
    /// One user's; `None`: everybody's.
    pub uid: Option<u32>,
    /// Over since then.
    pub since: Moment,
    /// Only jobs after this one.
    pub after: Option<JobId>,
    /// At most so many.
    pub limit: u32,
}

impl Store {
    /// Opens the database of a daemon that does not run, to read only; neither it nor anything
    /// beside it is changed, except that SQLite may make its index of the `-wal` file.
    ///
    /// # Errors
    /// A file that is no database of AEGIS's, newer than this program, or in use by a daemon.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            connection: open::read_only(path)?,
            path: path.to_owned(),
            pending: Vec::new(),
            pending_bytes: 0,
            next_seq: 0,
            next_job: 0,
        })
    }

    /// Finished jobs by number. Committed ones only.
    ///
    /// # Errors
    /// The database cannot be read or a view cannot be parsed.
    pub fn past_jobs(&self, which: PastJobs) -> Result<Vec<PastJob>, StoreError> {
        let failed = |error| StoreError::from_sqlite(&self.path, error);
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT json FROM final WHERE (?1 IS NULL OR uid = ?1) AND ended >= ?2 AND id > ?3
                 ORDER BY id LIMIT ?4",
            )
            .map_err(failed)?;
        let after = which.after.map_or(0, |job| job.0);
        let rows = statement
            .query_map(
                params![
                    which.uid,
                    integer(which.since.0),
                    integer(after),
                    which.limit
                ],
                |row| row.get::<_, String>(0),
            )
            .map_err(failed)?;
        rows.map(|json| self.past(self.parse("job view", &json.map_err(failed)?)?))
            .collect()
    }

    fn past(&self, view: JobView) -> Result<PastJob, StoreError> {
        // Only variables that the command mentions would count; the view does not have them.
        let command = Command::of(&view.argv, &view.cwd, &[], view.resources.gpus);
        let ran = |attempt: &aegis_common::wire::Attempt| match (attempt.started, attempt.ended) {
            (Some(started), Some(ended)) => ended.millis_since(started),
            _ => 0,
        };
        let last = view.attempts.last();
        let observed = match last {
            Some(last) if self.has_learned()? => self.learned_from(view.id, last.number)?,
            _ => None,
        };
        Ok(PastJob {
            job: view.id,
            uid: view.uid,
            command: command.to_string(),
            gpus: view.resources.gpus,
            gpu_mem: view.resources.gpu_mem,
            time_limit_s: view.resources.time_limit_s,
            submitted: view.submitted,
            ended: view.ended.unwrap_or(view.submitted),
            completed: matches!(
                view.state,
                JobState::Done {
                    outcome: Outcome::Ok
                }
            ),
            ran_ms: view.attempts.iter().map(ran).fold(0, u64::saturating_add),
            last_ran_ms: last.map_or(0, ran),
            peak: view.attempts.iter().map(|a| a.peak).max().unwrap_or(0),
            observed,
        })
    }

    /// A database that was only opened to read may be of a version that did not learn.
    fn has_learned(&self) -> Result<bool, StoreError> {
        self.connection
            .prepare_cached("SELECT 1 FROM sqlite_master WHERE name = 'learned_run'")
            .and_then(|mut statement| statement.exists([]))
            .map_err(|error| StoreError::from_sqlite(&self.path, error))
    }
}
