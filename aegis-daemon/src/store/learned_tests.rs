//! The learning store: bounds, doubles, privacy.
#![cfg(test)]

use std::path::Path;

use aegis_common::bytes::ByteString;
use aegis_common::id::{JobId, Moment};
use aegis_common::learned::Observed;
use proptest::prelude::*;

use super::learned::{IN_ALL, PER_USER};
use super::{LearnedKey, Store};
use crate::learning::{Command, RUNS_KEPT};

const MODEL: &str = "H200";

fn command(line: &str) -> Command {
    let argv: Vec<ByteString> = line.split(' ').map(ByteString::from).collect();
    Command::of(&argv, &"/home/ana".into(), &[], 1)
}

fn observed(peak: u64, ended: u64) -> Observed {
    Observed {
        gpu_model: MODEL.to_owned(),
        completed: true,
        out_of_memory: false,
        peak: Some(peak),
        overhead: None,
        profile: None,
        solo_rates: Vec::new(),
        ran_ms: 1000,
        work_ms: Some(900),
        ended: Moment(ended),
    }
}

fn key(uid: u32, command: &Command) -> LearnedKey<'_> {
    LearnedKey {
        uid,
        gpu_model: MODEL,
        command,
    }
}

fn store(directory: &Path) -> Store {
    Store::open(&directory.join("aegis.db")).unwrap()
}

fn count(store: &Store, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    let connection = &store.connection;
    connection.query_row(&sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn what_a_run_taught_is_known_to_the_next_and_to_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    let train = command("python train.py --bs 32");
    let run = observed(6 << 30, 5);
    store.learn(key(1000, &train), (JobId(3), 1), &run).unwrap();
    store.commit().unwrap();
    drop(store);

    let store = Store::open(&directory.path().join("aegis.db")).unwrap();
    let known = store.learned(key(1000, &train)).unwrap();
    assert_eq!(
        (known.runs, known.exact, known.peak),
        (1, true, Some(6 << 30))
    );
    // A larger batch is not this command, but like it.
    let larger = command("python train.py --bs 64 --seed 4");
    let like = store.learned(key(1000, &larger)).unwrap();
    assert_eq!(
        (like.runs, like.exact, like.peak),
        (1, false, Some(6 << 30))
    );
    // Neither other users, nor root, nor another GPU, nor another script.
    for uid in [0, 1001] {
        assert_eq!(store.learned(key(uid, &train)).unwrap().runs, 0);
    }
    let elsewhere = LearnedKey {
        gpu_model: "A100",
        ..key(1000, &train)
    };
    assert_eq!(store.learned(elsewhere).unwrap().runs, 0);
    let other = command("python other.py --bs 32");
    assert_eq!(store.learned(key(1000, &other)).unwrap().runs, 0);
    assert_eq!(store.learned_from(JobId(3), 1).unwrap(), Some(run));
    assert_eq!(store.learned_from(JobId(3), 2).unwrap(), None);
}

#[test]
fn runs_are_the_newest_and_forgetting_takes_them_along() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    let (train, other) = (command("python train.py"), command("python other.py"));
    for job in 0..50 {
        let run = observed(job + 1, job);
        store.learn(key(7, &train), (JobId(job), 1), &run).unwrap();
    }
    store
        .learn(key(7, &other), (JobId(90), 1), &observed(1, 90))
        .unwrap();
    store.commit().unwrap();
    let known = store.learned_commands(Some(7)).unwrap();
    assert_eq!(known[1].command, train);
    let runs = store.learned_runs(known[1].id).unwrap();
    assert_eq!(runs.len(), RUNS_KEPT);
    assert_eq!((runs[0].job, runs[31].job), (JobId(18), JobId(49)));

    store.forget_learned(vec![known[1].id]);
    store.commit().unwrap();
    assert_eq!(store.learned(key(7, &train)).unwrap().runs, 0);
    assert_eq!(count(&store, "learned_run"), 1);
    assert_eq!(store.learned(key(7, &other)).unwrap().runs, 1);
}

#[test]
fn no_user_has_more_than_a_share_and_the_least_used_go_first() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    let mut at = 0;
    let mut learn = |store: &mut Store, uid: u32, name: &str| {
        at += 1;
        let command = command(&format!("python {name}.py"));
        store
            .learn(key(uid, &command), (JobId(at), 1), &observed(1, at))
            .unwrap();
    };
    learn(&mut store, 1, "precious");
    for number in 0..PER_USER - 1 {
        learn(&mut store, 1, &number.to_string());
    }
    let precious = command("python precious.py");
    store
        .used_again(key(1, &precious), JobId(1), Moment(1 << 40))
        .unwrap();
    // Unknown commands are not made known by being used.
    store
        .used_again(key(1, &command("x")), JobId(2), Moment(1 << 40))
        .unwrap();
    learn(&mut store, 1, "one more");
    store.commit().unwrap();
    let known = store.learned_commands(Some(1)).unwrap();
    assert_eq!(i64::try_from(known.len()).unwrap(), PER_USER);
    assert_eq!(known[0].command, precious);
    let first = command("python 0.py");
    assert!(!known.iter().any(|known| known.command == first));
    assert_eq!(count(&store, "learned_run"), PER_USER);

    // Many users together: the store as a whole is bounded, too.
    for uid in 10..10 + u32::try_from(IN_ALL / PER_USER).unwrap() {
        for number in 0..PER_USER {
            learn(&mut store, uid, &number.to_string());
        }
        store.commit().unwrap();
    }
    assert_eq!(count(&store, "learned_command"), IN_ALL);
    assert_eq!(count(&store, "learned_run"), IN_ALL);
    let known = store.learned_commands(Some(1)).unwrap();
    assert!(known.iter().map(|known| &known.command).eq([&precious]));
}

#[test]
fn a_run_that_cannot_be_read_teaches_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    let train = command("python train.py");
    for job in [1, 2] {
        let run = observed(job, job);
        store.learn(key(7, &train), (JobId(job), 1), &run).unwrap();
    }
    store.commit().unwrap();
    let damage = "UPDATE learned_run SET json = '{}' WHERE job = 2";
    store.connection.execute(damage, []).unwrap();
    assert_eq!(store.learned(key(7, &train)).unwrap().peak, Some(1));
    let damage = "UPDATE learned_command SET json = '{}'";
    store.connection.execute(damage, []).unwrap();
    assert_eq!(store.learned(key(7, &train)).unwrap().runs, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever is told twice, in whatever order and however often the commit is repeated.
    #[test]
    fn an_attempt_counts_once(
        told in proptest::collection::vec((1_u64..6, 1_u32..3, 0_usize..2), 1..30), crash: bool
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut store = store(directory.path());
        let train = command("python train.py");
        for (job, attempt, commits) in &told {
            let run = observed(*job, *job);
            store.learn(key(7, &train), (JobId(*job), *attempt), &run).unwrap();
            for _ in 0..*commits {
                store.commit().unwrap();
            }
        }
        store.commit().unwrap();
        if crash {
            drop(store);
            store = Store::open(&directory.path().join("aegis.db")).unwrap();
        }
        let attempts: std::collections::BTreeSet<_> =
            told.iter().map(|(job, attempt, _)| (*job, *attempt)).collect();
        let known = store.learned(key(7, &train)).unwrap();
        prop_assert_eq!(known.runs as usize, attempts.len());
    }
}
