//! Crashes, full disks and damage.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use aegis_common::event::{Event, Stamped};
use aegis_common::id::{GpuIndex, JobId, Moment};
use aegis_common::job::{Exit, JobState, Outcome, Resources};
use aegis_common::wire::{JobView, Launch};
use proptest::prelude::*;

use super::{JobRecord, Store, StoreError};

fn event(number: u64) -> Stamped {
    let job = JobId(number % 7 + 1);
    Stamped {
        at: Moment(number),
        event: match number % 4 {
            0 => Event::Started {
                job,
                attempt: 1,
                gpus: vec![GpuIndex(0), GpuIndex(1)],
            },
            1 => Event::Ended {
                job,
                attempt: 1,
                exit: Exit::Signal(9),
            },
            2 => Event::StartFailed {
                job,
                attempt: 1,
                error: "\u{1b}nosuch\n\0".to_owned(),
            },
            _ => Event::Woken,
        },
    }
}

fn resources() -> Resources {
    Resources {
        gpus: 1,
        gpu_mem: None,
        priority: 0,
        exclusive: false,
        requeue: false,
        retries: 1,
        time_limit_s: None,
        on_suspend: None,
    }
}

fn record(id: u64) -> JobRecord {
    JobRecord {
        id: JobId(id),
        uid: 1000,
        name: "train".to_owned(),
        launch: Launch {
            argv: vec!["python".into(), aegis_common::bytes::ByteString(vec![0xff])],
            cwd: "/".into(),
            env: vec!["A=b".into()],
            umask: 0o22,
        },
        resources: resources(),
        token: *b"0123456789abcdef0123456789abcdef",
        submitted: Moment(1),
        gid: 1000,
        groups: vec![4, 27],
        learned: aegis_common::learned::Learned::default(),
    }
}

fn view(id: u64, uid: u32) -> JobView {
    JobView {
        id: JobId(id),
        name: "train".to_owned(),
        uid,
        user: None,
        argv: vec!["python".into()],
        cwd: "/".into(),
        resources: resources(),
        state: JobState::Done {
            outcome: Outcome::Ok,
        },
        submitted: Moment(1),
        first_started: None,
        ended: Some(Moment(id)),
        attempts: Vec::new(),
        holdings: Vec::new(),
        floor: None,
        next_exclusive: false,
        evictions: 0,
        refusals: Vec::new(),
        position: None,
        waits_for: None,
        learned: None,
        idle: Vec::new(),
        slowdown: None,
    }
}

/// One thing the owner may do.
#[derive(Clone, Debug)]
enum Step {
    Append,
    Commit,
    Snapshot,
    NextJob,
    /// The process dies: what is not committed is gone.
    Crash,
    /// The disk is full for the next commit.
    FullCommit,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Append),
        2 => Just(Step::Commit),
        1 => Just(Step::Snapshot),
        1 => Just(Step::NextJob),
        1 => Just(Step::Crash),
        1 => Just(Step::FullCommit),
    ]
}

fn set_page_limit(store: &Store, pages: i64) {
    store
        .connection
        .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
        .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_crash_leaves_a_prefix_with_everything_committed(
        steps in proptest::collection::vec(step(), 1..40)
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("aegis.db");
        let mut store = Store::open(&path).unwrap();
        // What the core saw since the last snapshot; how much of it is on disk.
        let (mut snapshot, mut seen, mut committed) = (None, Vec::new(), 0);
        let mut number = 0;
        let (mut last_job, mut last_committed_job) = (0, 0);
        for step in steps {
            match step {
                Step::Append => {
                    number += 1;
                    store.append(&event(number), &[]).unwrap();
                    seen.push(event(number));
                }
                Step::Commit => {
                    store.commit().unwrap();
                    (committed, last_committed_job) = (seen.len(), last_job);
                }
                Step::Snapshot => {
                    store.snapshot(&number.to_string()).unwrap();
                    snapshot = Some(number.to_string());
                    seen.clear();
                    (committed, last_committed_job) = (0, last_job);
                }
                Step::NextJob => {
                    let JobId(job) = store.next_job_id();
                    prop_assert!(job > last_job);
                    last_job = job;
                }
                Step::Crash => {
                    drop(store);
                    store = Store::open(&path).unwrap();
                    let recovery = store.recover().unwrap();
                    prop_assert_eq!(&recovery.snapshot, &snapshot);
                    prop_assert!(recovery.events.len() >= committed);
                    prop_assert_eq!(&recovery.events[..], &seen[..recovery.events.len()]);
                    prop_assert!(recovery.next_job.0 > last_committed_job);
                    seen.truncate(recovery.events.len());
                    (committed, last_job) = (seen.len(), recovery.next_job.0 - 1);
                }
                Step::FullCommit => {
                    set_page_limit(&store, 1);
                    // Too large for the free space of any page.
                    number += 1;
                    let big = Stamped {
                        at: Moment(number),
                        event: Event::JournalState { error: Some("x".repeat(1 << 20)) },
                    };
                    store.append(&big, &[]).unwrap();
                    seen.push(big);
                    match store.commit() {
                        Err(StoreError::Full { .. }) => prop_assert!(store.backlog() > 1 << 20),
                        // Pages freed by a snapshot made room.
                        Ok(()) => (committed, last_committed_job) = (seen.len(), last_job),
                        Err(error) => panic!("{error}"),
                    }
                    set_page_limit(&store, 1 << 30);
                }
            }
        }
        store.commit().unwrap();
        drop(store);
        let recovery = Store::open(&path).unwrap().recover().unwrap();
        prop_assert_eq!(recovery.events, seen);
        prop_assert_eq!(recovery.snapshot, snapshot);
    }

    #[test]
    fn a_damaged_file_is_refused_or_read_right_and_never_changed(
        at in 0_usize..16384, garbage in proptest::collection::vec(any::<u8>(), 1..64)
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("aegis.db");
        let mut store = Store::open(&path).unwrap();
        for number in 0..20 {
            store.append(&event(number), &[]).unwrap();
        }
        store.commit().unwrap();
        let events = store.recover().unwrap().events;
        checkpoint_and_close(store);
        let mut bytes = std::fs::read(&path).unwrap();
        for (place, byte) in bytes.iter_mut().skip(at).zip(garbage) {
            *place = byte;
        }
        std::fs::write(&path, &bytes).unwrap();
        match Store::open(&path) {
            Err(_) => prop_assert!(std::fs::read(&path).unwrap() == bytes),
            // Garbage in free space or inside a value is no structural damage.
            Ok(store) => if let Ok(recovery) = store.recover() {
                prop_assert!(recovery.events.len() <= events.len());
            }
        }
    }
}

fn checkpoint_and_close(store: Store) {
    store
        .connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(store);
}

fn refused(path: &Path) -> String {
    let before = std::fs::read(path).unwrap();
    let error = Store::open(path).unwrap_err();
    assert_eq!(std::fs::read(path).unwrap(), before, "the file is kept");
    error.to_string()
}

#[test]
fn records_and_views_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("aegis.db");
    let mut store = Store::open(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    store.put_job(&record(1)).unwrap();
    assert_eq!(store.job_record(JobId(1)).unwrap(), Some(record(1)));
    for (id, uid) in [(1, 1000), (2, 1001), (3, 1000)] {
        store.put_final(&view(id, uid)).unwrap();
    }
    store.commit().unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.job_record(JobId(1)).unwrap(), Some(record(1)));
    assert_eq!(store.job_record(JobId(2)).unwrap(), None);
    assert_eq!(store.final_view(JobId(2)).unwrap(), Some(view(2, 1001)));
    let ids = |uid, limit| -> Vec<u64> {
        let views = store.finished(uid, limit).unwrap();
        views.iter().map(|view| view.id.0).collect()
    };
    assert_eq!(ids(None, 10), [3, 2, 1]);
    assert_eq!(ids(Some(1000), 10), [3, 1]);
    assert_eq!(ids(None, 1), [3]);
}

#[test]
fn the_previous_epoch_is_kept_and_older_ones_are_pruned() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(&directory.path().join("aegis.db")).unwrap();
    for epoch in 0..3 {
        for number in 0..5 {
            store.append(&event(epoch * 5 + number), &[]).unwrap();
        }
        store.snapshot(&format!("epoch {epoch}")).unwrap();
    }
    let count = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        store
            .connection
            .query_row(&sql, [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!((count("journal"), count("snapshot")), (5, 2));
}

#[test]
fn damage_is_refused_with_the_way_out_and_the_file_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("aegis.db");
    let mut store = Store::open(&path).unwrap();
    for number in 0..2000 {
        store.append(&event(number), &[]).unwrap();
    }
    store.commit().unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::Busy { .. })));
    checkpoint_and_close(store);
    let whole = std::fs::read(&path).unwrap();

    for length in [0, 10, 100, 4096, whole.len() / 2] {
        std::fs::write(&path, &whole[..length]).unwrap();
        let message = refused(&path);
        assert!(
            message.contains("damaged") && message.contains("mv "),
            "{message}"
        );
        assert!(message.contains("the queue is lost"), "{message}");
    }
    std::fs::write(&path, "not a database, surely not one at all").unwrap();
    assert!(refused(&path).contains("not an SQLite database"));

    std::fs::write(&path, &whole).unwrap();
    Store::open(&path).unwrap();
    let mut newer = whole.clone();
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&path, &newer).unwrap();
    assert!(refused(&path).contains("format 99"));
    let mut foreign = whole.clone();
    foreign[68..72].copy_from_slice(&7_u32.to_be_bytes());
    std::fs::write(&path, &foreign).unwrap();
    assert!(refused(&path).contains("another program"));

    std::fs::remove_file(&path).unwrap();
    std::fs::write(directory.path().join("aegis.db-wal"), "stale").unwrap();
    assert!(Store::open(&path).unwrap_err().to_string().contains("-wal"));
}

#[test]
fn a_bad_or_missing_journal_row_is_damage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("aegis.db");
    for sql in [
        "UPDATE journal SET json = '{\"at\":1}' WHERE seq = 3",
        "DELETE FROM journal WHERE seq = 3",
    ] {
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_file(directory.path().join("aegis.db-wal"));
        let mut store = Store::open(&path).unwrap();
        for number in 0..5 {
            store.append(&event(number), &[]).unwrap();
        }
        store.commit().unwrap();
        store.connection.execute(sql, []).unwrap();
        let error = store.recover().unwrap_err();
        assert!(
            error.to_string().contains("event 3 of the journal"),
            "{error}"
        );
    }
}

#[test]
fn a_new_database_gives_no_number_twice() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("jobs/41")).unwrap();
    let mut store = Store::open(&directory.path().join("aegis.db")).unwrap();
    assert_eq!(store.next_job_id(), JobId(42));
}

#[test]
fn a_full_disk_loses_and_doubles_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("aegis.db");
    let mut store = Store::open(&path).unwrap();
    set_page_limit(&store, 1);
    let mut sent = Vec::new();
    for number in 0..200 {
        store.append(&event(number), &[]).unwrap();
        sent.push(event(number));
    }
    for _ in 0..3 {
        let error = store.commit().unwrap_err();
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
    }
    assert!(store.recover().unwrap().events.is_empty());
    set_page_limit(&store, 1 << 30);
    store.append(&event(200), &[]).unwrap();
    sent.push(event(200));
    store.commit().unwrap();
    assert_eq!(store.backlog(), 0);
    drop(store);
    assert_eq!(Store::open(&path).unwrap().recover().unwrap().events, sent);
}
