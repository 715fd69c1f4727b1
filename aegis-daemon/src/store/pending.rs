//! Writes that wait for the next commit.

use aegis_common::id::{JobId, Moment};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::learned::{self, Lesson};

/// One row to write. Each names its key, so writing it twice is the same as once.
#[derive(Debug)]
pub(super) enum Write {
    Event {
        seq: i64,
        at: Moment,
        json: String,
        actions: String,
    },
    Job {
        id: JobId,
        uid: u32,
        json: String,
    },
    Final {
        id: JobId,
        uid: u32,
        ended: Moment,
        json: String,
    },
    NextJob {
        next: u64,
    },
    Snapshot {
        seq: i64,
        json: String,
    },
    /// Boxed: it is much larger than the others.
    Learn(Box<Lesson>),
    Forget {
        ids: Vec<i64>,
    },
}

impl Write {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Event { json, actions, .. } => json.len() + actions.len(),
            Self::Job { json, .. } | Self::Final { json, .. } | Self::Snapshot { json, .. } => {
                json.len()
            }
            Self::Learn(lesson) => lesson.bytes(),
            Self::NextJob { .. } => 0,
            Self::Forget { ids } => ids.len() * size_of::<i64>(),
        }
    }

    fn execute(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
            transaction.prepare_cached(sql)?.execute(values).map(drop)
        };
        match self {
            Self::Event {
                seq,
                at,
                json,
                actions,
            } => run(
                "INSERT OR REPLACE INTO journal (seq, at, json, actions) VALUES (?1, ?2, ?3, ?4)",
                params![seq, integer(at.0), json, actions],
            ),
            Self::Job { id, uid, json } => run(
                "INSERT OR REPLACE INTO job (id, uid, json) VALUES (?1, ?2, ?3)",
                params![integer(id.0), uid, json],
            ),
            Self::Final {
                id,
                uid,
                ended,
                json,
            } => run(
                "INSERT OR REPLACE INTO final (id, uid, ended, json) VALUES (?1, ?2, ?3, ?4)",
                params![integer(id.0), uid, integer(ended.0), json],
            ),
            Self::NextJob { next } => run(
                "UPDATE counter SET value = ?1 WHERE name = 'next_job'",
                params![integer(*next)],
            ),
            Self::Learn(lesson) => lesson.execute(transaction),
            Self::Forget { ids } => learned::forget(transaction, ids),
            Self::Snapshot { seq, json } => {
                run(
                    "DELETE FROM journal WHERE seq <=
                       (SELECT max(seq) FROM snapshot WHERE seq < ?1)",
                    params![seq],
                )?;
                run(
                    "DELETE FROM snapshot WHERE seq <
                       (SELECT max(seq) FROM snapshot WHERE seq < ?1)",
                    params![seq],
                )?;
                run(
                    "INSERT OR REPLACE INTO snapshot (seq, json) VALUES (?1, ?2)",
                    params![seq, json],
                )
            }
        }
    }
}

/// Writes all of them or none. `synchronous=FULL` makes COMMIT wait for the disk.
pub(super) fn write_all(connection: &mut Connection, writes: &[Write]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for write in writes {
        write.execute(&transaction)?;
    }
    transaction.commit()
}

/// SQLite's integers are signed. Job numbers and milliseconds stay far below the limit.
pub(super) fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
