//! Opening the database: refuse what is not ours or not whole, create what is not there.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::StoreError;

/// "AEGS": marks the file as ours in SQLite's header.
const APPLICATION_ID: i32 = 0x4145_4753;

/// One script per format version, each run once and in order.
const MIGRATIONS: [&str; 2] = [
    "
    CREATE TABLE journal (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, json TEXT NOT NULL,
                          actions TEXT NOT NULL);
    CREATE TABLE snapshot (seq INTEGER PRIMARY KEY, json TEXT NOT NULL);
    CREATE TABLE job (id INTEGER PRIMARY KEY, uid INTEGER NOT NULL, json TEXT NOT NULL);
    CREATE TABLE final (id INTEGER PRIMARY KEY, uid INTEGER NOT NULL, ended INTEGER NOT NULL,
                        json TEXT NOT NULL);
    CREATE INDEX final_newest ON final (ended, id);
    CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO counter VALUES ('next_job', 1);
",
    // `form`: how commands were read; `json`: the command in that form; `used`: for the least
    // recently used to go first.
    "
    CREATE TABLE learned_command (id INTEGER PRIMARY KEY, uid INTEGER NOT NULL,
                                  model TEXT NOT NULL, form INTEGER NOT NULL, json TEXT NOT NULL,
                                  script TEXT NOT NULL, last_job INTEGER NOT NULL,
                                  used INTEGER NOT NULL, UNIQUE (uid, model, form, json));
    CREATE INDEX learned_script ON learned_command (uid, model, script, used);
    CREATE INDEX learned_used ON learned_command (used, id);
    CREATE INDEX learned_user ON learned_command (uid, used, id);
    CREATE TABLE learned_run (job INTEGER NOT NULL, attempt INTEGER NOT NULL,
                              command INTEGER NOT NULL, ended INTEGER NOT NULL, json TEXT NOT NULL,
                              PRIMARY KEY (job, attempt)) WITHOUT ROWID;
    CREATE INDEX learned_run_of ON learned_run (command, ended);
",
];

/// Opens or creates it, checked, migrated and locked.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    match File::open(path) {
        Ok(file) => check_header(path, file)?,
        Err(error) if error.kind() == ErrorKind::NotFound => create(path)?,
        Err(error) => return Err(StoreError::io(path, error)),
    }
    let mut connection = connect(path)?;
    let failed = |error| StoreError::from_sqlite(path, error);
    let version = check(path, &connection)?;
    configure(&connection).map_err(failed)?;
    migrate(&mut connection, version).map_err(failed)?;
    Ok(connection)
}

/// Opens it to read only, checked but neither migrated nor locked.
pub(super) fn read_only(path: &Path) -> Result<Connection, StoreError> {
    let file = File::open(path).map_err(|error| StoreError::io(path, error))?;
    check_header(path, file)?;
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(|error| StoreError::from_sqlite(path, error))?;
    check(path, &connection)?;
    Ok(connection)
}

/// SQLite takes an empty file for a new database: to us it is a truncated one.
fn check_header(path: &Path, mut file: File) -> Result<(), StoreError> {
    let mut header = [0; 16];
    match file.read_exact(&mut header) {
        Ok(()) if header == *b"SQLite format 3\0" => Ok(()),
        Ok(()) => Err(StoreError::damaged(path, "it is not an SQLite database")),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            Err(StoreError::damaged(path, "it is empty or truncated"))
        }
        Err(error) => Err(StoreError::io(path, error)),
    }
}

/// Makes a complete database under another name first: a crash leaves none or a whole one.
fn create(path: &Path) -> Result<(), StoreError> {
    let wal = with_suffix(path, "-wal");
    if wal.exists() {
        return Err(StoreError::damaged(
            path,
            format!("the file is missing but its {} is there", wal.display()),
        ));
    }
    let new = with_suffix(path, ".new");
    for leftover in [&new, &with_suffix(&new, "-journal")] {
        match std::fs::remove_file(leftover) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(StoreError::io(leftover, error));
            }
            _ => {}
        }
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)
        .map_err(|error| StoreError::io(&new, error))?;
    let failed = |error| StoreError::from_sqlite(&new, error);
    let mut connection = connect(&new)?;
    migrate(&mut connection, 0).map_err(failed)?;
    connection
        .execute(
            "UPDATE counter SET value = ?1 WHERE name = 'next_job'",
            [first_unused_job(path)],
        )
        .map_err(failed)?;
    connection.close().map_err(|(_, error)| failed(error))?;
    std::fs::rename(&new, path).map_err(|error| StoreError::io(path, error))?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| StoreError::io(directory, error))
}

/// A job number is never reused, not even after the database was moved away: the start records
/// beside it still name the numbers given out before.
fn first_unused_job(path: &Path) -> i64 {
    let jobs = path.with_file_name("jobs");
    let highest = std::fs::read_dir(jobs).map_or(0, |entries| {
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .max()
            .unwrap_or(0)
    });
    i64::saturating_add(highest, 1)
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let failed = |error| StoreError::from_sqlite(path, error);
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(failed)?;
    // A file that is refused must stay byte for byte as it was.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(failed)?;
    // Taken with the first access and kept: two daemons must not share a journal.
    connection
        .pragma_update(None, "locking_mode", "EXCLUSIVE")
        .map_err(failed)?;
    Ok(connection)
}

/// Returns the format version.
fn check(path: &Path, connection: &Connection) -> Result<i32, StoreError> {
    let failed = |error| StoreError::from_sqlite(path, error);
    let number = |name| {
        connection
            .pragma_query_value(None, name, |row| row.get::<_, i32>(0))
            .map_err(failed)
    };
    let found = number("application_id")?;
    if found != APPLICATION_ID {
        return Err(StoreError::Foreign {
            path: path.to_owned(),
            found,
        });
    }
    let version = number("user_version")?;
    let known = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    if version > known {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found: version,
            known,
        });
    }
    let problem: String = connection
        .pragma_query_value(None, "quick_check", |row| row.get(0))
        .map_err(failed)?;
    if problem == "ok" {
        Ok(version)
    } else {
        Err(StoreError::damaged(path, problem))
    }
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")
}

fn migrate(connection: &mut Connection, version: i32) -> rusqlite::Result<()> {
    let done = usize::try_from(version).unwrap_or(0);
    for (number, script) in (1..).zip(MIGRATIONS).skip(done) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(script)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::{APPLICATION_ID, MIGRATIONS, connect};
    use crate::store::Store;
    use aegis_common::id::JobId;

    /// What a daemon of the first format left: one journal row, one job number given out.
    fn first_format(path: &std::path::Path) {
        std::fs::File::create(path).unwrap();
        let connection = connect(path).unwrap();
        connection.execute_batch(MIGRATIONS[0]).unwrap();
        let number = |name, value: i32| connection.pragma_update(None, name, value).unwrap();
        number("application_id", APPLICATION_ID);
        number("user_version", 1);
        let rows =
            "INSERT INTO journal VALUES (1, 5, '{\"at\":5,\"event\":{\"event\":\"woken\"}}', '[]');
                    UPDATE counter SET value = 8;";
        connection.execute_batch(rows).unwrap();
    }

    #[test]
    fn a_database_of_the_first_format_is_taken_over_with_all_it_has() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("aegis.db");
        first_format(&path);
        let untouched = std::fs::read(&path).unwrap();
        let reader = Store::open_read_only(&path).unwrap();
        assert_eq!(reader.recover().unwrap().events.len(), 1);
        drop(reader);
        assert_eq!(std::fs::read(&path).unwrap(), untouched);

        for _ in 0..2 {
            let mut store = Store::open(&path).unwrap();
            assert_eq!(store.recover().unwrap().events.len(), 1);
            assert!(store.learned_commands(None).unwrap().is_empty());
            assert!(store.next_job_id() >= JobId(8));
        }
    }
}
