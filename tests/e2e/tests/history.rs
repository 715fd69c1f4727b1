//! `aegis history`: what one run taught, the next is told.

use std::os::unix::process::CommandExt;

use aegis_common::id::JobId;
use aegis_common::learned::Learned;
use aegis_common::wire::HistoryEntry;
use anyhow::{Context, Result};
use e2e::{GIB, Setup, World};
use serde_json::Value;

/// A short training of `steps` steps.
fn training(world: &World, steps: &str, seed: &str) -> Vec<std::ffi::OsString> {
    let mut command = world.workload(&[
        "vision",
        "--startup",
        "0",
        "--epochs",
        "1",
        "--steps",
        steps,
    ]);
    // Only to be different: `env` puts it into the environment.
    let env = ["env".into(), format!("SEED={seed}").into()];
    command.splice(0..0, env);
    command
}

fn history(world: &World, arguments: &[&str]) -> Result<Vec<HistoryEntry>> {
    let mut answer: Value = world.json(&[&["history"], arguments].concat())?;
    serde_json::from_value(answer["commands"].take()).context("commands")
}

fn known(world: &World, job: JobId) -> Result<Option<Learned>> {
    Ok(world.view(job)?.learned)
}

#[test]
fn the_second_run_knows_what_the_first_needed_until_it_is_forgotten() -> Result<()> {
    let mut world = World::start(Setup::gpus(1, 16 * GIB))?;
    assert_eq!(history(&world, &[])?, []);
    let first = world.submit(&[], &training(&world, "10", "1"))?;
    assert_eq!(world.wait(first)?, 0);
    assert_eq!(known(&world, first)?, None);
    let peak = world.view(first)?.attempts[0].peak;
    assert!(peak > GIB);

    let entries = history(&world, &[])?;
    let [entry] = entries.as_slice() else {
        panic!("{entries:?}")
    };
    assert_eq!((entry.runs, entry.completed, entry.failed), (1, 1, 0));
    assert_eq!(entry.learned.peak, Some(peak));
    assert!(entry.learned.exact && entry.learned.work.is_some());
    assert!(entry.command.contains(" steps=10"), "{}", entry.command);
    assert!(!entry.command.contains("SEED"), "{}", entry.command);
    assert_eq!(entry.attempts.len(), 1);
    assert_eq!(entry.last_job, first);

    // Another seed is the same command, more steps a similar one.
    let second = training(&world, "10", "2");
    let words = ["submit".into(), "--".into()].into_iter().chain(second);
    let words: Vec<std::ffi::OsString> = words.collect();
    let answer = world.run(&words)?;
    let line = answer
        .stdout
        .lines()
        .find(|line| line.starts_with("Known: peak "));
    let line = line.with_context(|| format!("{answer:?}"))?;
    assert!(line.ends_with("from 1 run."), "{line}");
    let second = JobId(first.0 + 1);
    let told = known(&world, second)?.context("known")?;
    assert_eq!((told.exact, told.runs, told.peak), (true, 1, Some(peak)));
    let status = world.run(["status", &second.to_string()])?;
    assert!(status.stdout.contains("\n  known      peak "), "{status:?}");
    let similar = world.submit(&[], &training(&world, "12", "3"))?;
    let told = known(&world, similar)?.context("known")?;
    assert_eq!((told.exact, told.peak), (false, Some(peak)));
    assert_eq!(world.wait(second)?, 0);
    assert_eq!(world.wait(similar)?, 0);

    // A crash of the daemon neither loses nor doubles a run.
    world.crash_and_restart()?;
    let entries = history(&world, &[])?;
    let runs: Vec<u32> = entries.iter().map(|entry| entry.runs).collect();
    assert_eq!(runs, [1, 2]);
    let of_job = history(&world, &[&second.to_string()])?;
    let jobs: Vec<JobId> = of_job[0].attempts.iter().map(|run| run.job).collect();
    assert_eq!((of_job.len(), jobs), (1, vec![first, second]));
    assert_eq!(history(&world, &["steps=12"])?[0].last_job, similar);

    // By hand: the table, one of it, and forgetting.
    let table = world.run(["history"])?.stdout;
    assert!(table.starts_with("RUNS"), "{table}");
    assert_eq!(table.lines().count(), 3, "{table}");
    let one = world.run(["history", &first.to_string()])?.stdout;
    assert!(one.contains("2 kept: 2 completed"), "{one}");
    let forgotten = world.run(["history", "forget", &first.to_string()])?;
    assert!(forgotten.stdout.starts_with("forgotten: "), "{forgotten:?}");
    assert_eq!(history(&world, &[])?.len(), 1);
    let unsaid = world.run(["history", "forget"])?;
    assert_eq!(unsaid.code, 64, "{unsaid:?}");
    assert!(unsaid.stderr.contains("--all"), "{unsaid:?}");
    let all: Value = world.json(&["history", "forget", "--all"])?;
    assert_eq!(all["forgotten"].as_array().map(Vec::len), Some(1));
    assert_eq!(history(&world, &[])?, []);
    let anew = world.submit(&[], &training(&world, "10", "4"))?;
    assert_eq!(known(&world, anew)?, None);
    assert_eq!(world.wait(anew)?, 0);
    Ok(())
}

#[test]
fn a_run_that_failed_and_one_out_of_memory_are_told_apart() -> Result<()> {
    let world = World::start(Setup::gpus(1, 8 * GIB))?;
    let failed = world.submit(&[], &["sh", "-c", "exit 3"])?;
    assert_eq!(world.wait(failed)?, 3);
    let oom = world.workload(&["hold", "20GiB"]);
    let oom = world.submit(&["--exclusive", "--retries", "0"], &oom)?;
    assert_eq!(world.wait(oom)?, 90);
    let entries = history(&world, &[])?;
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| (entry.last_job, entry.failed, entry.out_of_memory))
        .collect();
    assert_eq!(seen, [(oom, 0, 1), (failed, 1, 0)]);
    // Nothing is concluded from a command that only ever failed.
    assert_eq!(entries[1].learned.runs, 0);
    Ok(())
}

#[test]
fn nobody_but_root_sees_what_other_peoples_runs_taught() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        e2e::skip!("needs root");
    }
    let mut setup = Setup::gpus(1, 16 * GIB);
    setup.rootless = false;
    let world = World::start(setup)?;
    let run_as = |uid: u32, arguments: &[&str]| -> Result<e2e::Answer> {
        let mut aegis = world.aegis();
        aegis.current_dir("/").args(arguments).uid(uid).gid(uid);
        Ok(aegis.output().context("starting aegis")?.into())
    };
    let (ana, ben) = (65_534, 54_321);
    for uid in [ana, ben] {
        let submitted = run_as(uid, &["submit", "--wait", "--", "sh", "-c", "true"])?;
        assert_eq!(submitted.code, 0, "{submitted:?}");
    }
    let count = |answer: e2e::Answer| -> Result<Option<usize>> {
        let answer: Value = serde_json::from_str(&answer.stdout)?;
        Ok(answer["commands"].as_array().map(Vec::len))
    };
    for uid in [ana, ben] {
        assert_eq!(count(run_as(uid, &["history", "--json"])?)?, Some(1));
        let all = run_as(uid, &["history", "--all-users"])?;
        assert_eq!(all.code, 77, "{all:?}");
    }
    // Ana's job is number 1.
    for arguments in [&["history", "1"][..], &["history", "forget", "1"]] {
        let other = run_as(ben, arguments)?;
        assert_eq!(other.code, 77, "{other:?}");
    }
    let forgotten = run_as(ben, &["history", "forget", "--all", "--json"])?;
    assert_eq!(forgotten.code, 0, "{forgotten:?}");
    assert_eq!(count(run_as(ana, &["history", "--json"])?)?, Some(1));
    assert_eq!(count(run_as(0, &["history", "--json"])?)?, Some(0));
    assert_eq!(
        count(run_as(0, &["history", "--all-users", "--json"])?)?,
        Some(1)
    );
    Ok(())
}
