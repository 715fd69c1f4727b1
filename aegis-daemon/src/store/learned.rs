//! What runs taught: one record per user, command and GPU model, with its newest runs.
//!
//! The rows of an attempt carry its job and number: writing them twice is the same as once. They are
//! written in the transaction of the event that ended the attempt, so that a crash neither loses
//! one whose end is in the journal nor counts one twice.

use aegis_common::id::{JobId, Moment};
use aegis_common::learned::{Learned, Observed};
use aegis_common::wire::HistoryRun;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::pending::{Write, integer};
use super::{Store, StoreError};
use crate::learning::{self, Command, FORM, RUNS_KEPT};

/// Commands kept of one user; the least recently used go first.
pub(super) const PER_USER: i64 = 256;
/// Commands kept in all.
pub(super) const IN_ALL: i64 = 4_096;
/// Commands of one script that are compared with a new one, last used first.
const COMPARED: i64 = 256;

/// Whose and which record.
#[derive(Clone, Copy, Debug)]
pub struct LearnedKey<'a> {
    /// The user.
    pub uid: u32,
    /// NVML's product name.
    pub gpu_model: &'a str,
    /// The command.
    pub command: &'a Command,
}

/// A record as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedCommand {
    /// The row.
    pub id: i64,
    /// The user.
    pub uid: u32,
    /// NVML's product name.
    pub gpu_model: String,
    /// The command.
    pub command: Command,
    /// The newest job of it.
    pub last_job: JobId,
    /// When it was last submitted or ended.
    pub last_used: Moment,
}

/// What an attempt adds.
#[derive(Debug)]
pub(super) struct Lesson {
    uid: u32,
    gpu_model: String,
    script: String,
    command: String,
    job: JobId,
    at: Moment,
    /// The attempt and what it taught; `None`: the command was only used.
    run: Option<(u32, String)>,
}

impl Store {
    /// Adds what an attempt taught to the open transaction.
    ///
    /// # Errors
    /// Only if it cannot be represented as JSON.
    pub fn learn(
        &mut self,
        key: LearnedKey<'_>,
        (job, attempt): (JobId, u32),
        observed: &Observed,
    ) -> Result<(), StoreError> {
        let json = self.to_json("observation", observed)?;
        let lesson = self.lesson(key, job, observed.ended, Some((attempt, json)))?;
        self.queue(Write::Learn(Box::new(lesson)));
        Ok(())
    }

    /// Notes in the open transaction that a command is used again: it stays longer. Does nothing
    /// for one that is not known.
    ///
    /// # Errors
    /// Only if it cannot be represented as JSON.
    pub fn used_again(
        &mut self,
        key: LearnedKey<'_>,
        job: JobId,
        at: Moment,
    ) -> Result<(), StoreError> {
        let lesson = self.lesson(key, job, at, None)?;
        self.queue(Write::Learn(Box::new(lesson)));
        Ok(())
    }

    fn lesson(
        &self,
        key: LearnedKey<'_>,
        job: JobId,
        at: Moment,
        run: Option<(u32, String)>,
    ) -> Result<Lesson, StoreError> {
        Ok(Lesson {
            uid: key.uid,
            gpu_model: key.gpu_model.to_owned(),
            script: key.command.script.clone(),
            command: self.to_json("command", key.command)?,
            job,
            at,
            run,
        })
    }

    /// What is known of a command, by itself or by the same user's similar ones. Committed records
    /// only.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn learned(&self, key: LearnedKey<'_>) -> Result<Learned, StoreError> {
        let known = self.of_script(key)?;
        if let Some(exact) = known.iter().find(|known| known.command == *key.command) {
            let learned = self.summary_of(exact.id)?;
            if learned.runs > 0 {
                return Ok(learned);
            }
        }
        let others: Vec<&LearnedCommand> = known
            .iter()
            .filter(|known| known.command != *key.command)
            .collect();
        let commands: Vec<Command> = others.iter().map(|other| other.command.clone()).collect();
        let (_, chosen) = learning::choose(key.command, &commands);
        let mut similar = Vec::new();
        for other in chosen.into_iter().filter_map(|at| others.get(at)) {
            let learned = self.summary_of(other.id)?;
            if learned.runs > 0 {
                similar.push(learned);
            }
        }
        Ok(learning::similar(&similar))
    }

    /// Records, all users' or one's, last used first. Committed ones only.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn learned_commands(&self, uid: Option<u32>) -> Result<Vec<LearnedCommand>, StoreError> {
        self.commands(
            "SELECT id, uid, model, json, last_job, used FROM learned_command
             WHERE (?1 IS NULL OR uid = ?1) AND form = ?2 ORDER BY used DESC, id DESC",
            params![uid, FORM],
        )
    }

    /// The runs kept of a record, oldest first. Committed ones only.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn learned_runs(&self, id: i64) -> Result<Vec<HistoryRun>, StoreError> {
        let failed = |error| StoreError::from_sqlite(&self.path, error);
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT job, attempt, json FROM learned_run WHERE command = ?1
                 ORDER BY ended, job, attempt",
            )
            .map_err(failed)?;
        let row = |row: &Row<'_>| Ok((number(row, 0)?, row.get(1)?, row.get::<_, String>(2)?));
        let rows = statement.query_map([id], row).map_err(failed)?;
        let mut runs = Vec::new();
        for row in rows {
            let (job, attempt, json) = row.map_err(failed)?;
            // What another version wrote and this one cannot read teaches nothing.
            if let Ok(observed) = serde_json::from_str(&json) {
                runs.push(HistoryRun {
                    job: JobId(job),
                    attempt,
                    observed,
                });
            }
        }
        Ok(runs)
    }

    /// What an attempt taught, if that is kept. Committed only.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn learned_from(&self, job: JobId, attempt: u32) -> Result<Option<Observed>, StoreError> {
        let json: Option<String> = self
            .connection
            .prepare_cached("SELECT json FROM learned_run WHERE job = ?1 AND attempt = ?2")
            .and_then(|mut statement| {
                statement
                    .query_row(params![integer(job.0), attempt], |row| row.get(0))
                    .optional()
            })
            .map_err(|error| StoreError::from_sqlite(&self.path, error))?;
        Ok(json.and_then(|json| serde_json::from_str(&json).ok()))
    }

    /// Removes records in the open transaction.
    pub fn forget_learned(&mut self, ids: Vec<i64>) {
        self.queue(Write::Forget { ids });
    }

    fn of_script(&self, key: LearnedKey<'_>) -> Result<Vec<LearnedCommand>, StoreError> {
        self.commands(
            "SELECT id, uid, model, json, last_job, used FROM learned_command
             WHERE uid = ?1 AND model = ?2 AND script = ?3 AND form = ?4
             ORDER BY used DESC, id DESC LIMIT ?5",
            params![key.uid, key.gpu_model, key.command.script, FORM, COMPARED],
        )
    }

    fn commands(
        &self,
        sql: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> Result<Vec<LearnedCommand>, StoreError> {
        let failed = |error| StoreError::from_sqlite(&self.path, error);
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query(values).map_err(failed)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let read = |row: &Row<'_>| {
                let json: String = row.get(3)?;
                Ok(serde_json::from_str(&json).ok().zip(Some((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    number(row, 4)?,
                    number(row, 5)?,
                ))))
            };
            if let Some((command, (id, uid, gpu_model, job, used))) = read(row).map_err(failed)? {
                found.push(LearnedCommand {
                    id,
                    uid,
                    gpu_model,
                    command,
                    last_job: JobId(job),
                    last_used: Moment(used),
                });
            }
        }
        Ok(found)
    }

    fn summary_of(&self, id: i64) -> Result<Learned, StoreError> {
        let runs = self.learned_runs(id)?.into_iter();
        let observed: Vec<Observed> = runs.map(|run| run.observed).collect();
        Ok(learning::summary(&observed))
    }
}

impl Lesson {
    pub(super) fn bytes(&self) -> usize {
        self.command.len() + self.run.as_ref().map_or(0, |(_, json)| json.len())
    }

    pub(super) fn execute(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let key = params![self.uid, self.gpu_model, FORM, self.command];
        let mut is_new = false;
        if self.run.is_some() {
            let inserted = transaction
                .prepare_cached(
                    "INSERT OR IGNORE INTO learned_command
                       (uid, model, form, json, script, last_job, used)
                     VALUES (?1, ?2, ?3, ?4, ?5, 0, 0)",
                )?
                .execute(params![
                    self.uid,
                    self.gpu_model,
                    FORM,
                    self.command,
                    self.script
                ])?;
            is_new = inserted > 0;
        }
        let id: Option<i64> = transaction
            .prepare_cached(
                "SELECT id FROM learned_command
                 WHERE uid = ?1 AND model = ?2 AND form = ?3 AND json = ?4",
            )?
            .query_row(key, |row| row.get(0))
            .optional()?;
        let Some(id) = id else { return Ok(()) };
        transaction
            .prepare_cached(
                "UPDATE learned_command
                 SET last_job = max(last_job, ?2), used = max(used, ?3) WHERE id = ?1",
            )?
            .execute(params![id, integer(self.job.0), integer(self.at.0)])?;
        if let Some((attempt, json)) = &self.run {
            transaction
                .prepare_cached(
                    "INSERT OR REPLACE INTO learned_run (job, attempt, command, ended, json)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![
                    integer(self.job.0),
                    attempt,
                    id,
                    integer(self.at.0),
                    json
                ])?;
            transaction
                .prepare_cached(
                    "DELETE FROM learned_run WHERE (job, attempt) IN
                       (SELECT job, attempt FROM learned_run WHERE command = ?1
                        ORDER BY ended DESC, job DESC, attempt DESC LIMIT -1 OFFSET ?2)",
                )?
                .execute(params![id, i64::try_from(RUNS_KEPT).unwrap_or(i64::MAX)])?;
        }
        if is_new {
            self.forget_unused(transaction)?;
        }
        Ok(())
    }

    /// Keeps the number of commands bounded.
    fn forget_unused(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let beyond = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
            let mut statement = transaction.prepare_cached(sql)?;
            let rows = statement.query_map(values, |row| row.get::<_, i64>(0))?;
            rows.collect::<rusqlite::Result<Vec<i64>>>()
        };
        let of_user = beyond(
            "SELECT id FROM learned_command WHERE uid = ?1
             ORDER BY used DESC, id DESC LIMIT -1 OFFSET ?2",
            params![self.uid, PER_USER],
        )?;
        forget(transaction, &of_user)?;
        let of_all = beyond(
            "SELECT id FROM learned_command ORDER BY used DESC, id DESC LIMIT -1 OFFSET ?1",
            params![IN_ALL],
        )?;
        forget(transaction, &of_all)
    }
}

/// Removes these records and their runs.
pub(super) fn forget(transaction: &Transaction<'_>, ids: &[i64]) -> rusqlite::Result<()> {
    for id in ids {
        for sql in [
            "DELETE FROM learned_run WHERE command = ?1",
            "DELETE FROM learned_command WHERE id = ?1",
        ] {
            transaction.prepare_cached(sql)?.execute([id])?;
        }
    }
    Ok(())
}

/// SQLite's integers are signed; ours never are.
fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    Ok(u64::try_from(number).unwrap_or(0))
}
