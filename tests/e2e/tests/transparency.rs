//! Invariant 1: transparent or absent. The simulator's call journal is the witness.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result};
use e2e::{GIB, Setup, World};
use simgpu_core::journal::Normalised;

/// Calls by which the shim learns which GPU it is on: they change nothing and take no memory.
const HARMLESS: [&str; 12] = [
    "cuDeviceGet",
    "cuDeviceGetCount",
    "cuDeviceGetUuid",
    "cuDeviceGetUuid_v2",
    "cuDeviceGetName",
    "cuDeviceTotalMem_v2",
    "cuCtxGetDevice",
    "cuCtxGetCurrent",
    "cuDriverGetVersion",
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
    "cuPointerGetAttribute",
];

const ROUTES: [&str; 3] = ["dlsym", "getprocaddress", "link"];

fn training(world: &World, route: &str) -> Vec<std::ffi::OsString> {
    world.workload(&[
        "--route",
        route,
        "vision",
        "--startup",
        "0",
        "--epochs",
        "1",
        "--steps",
        "8",
        "--eval-steps",
        "2",
    ])
}

/// Runs a program outside the daemon; returns its journal, program code and output aside.
fn journal_of(world: &World, mut command: Command) -> Result<Vec<Normalised>> {
    let child = command.spawn()?;
    let pid = child.id();
    let output = child.wait_with_output()?;
    assert!(output.status.success(), "{output:?}");
    let records = world.machine.journal_of(pid)?;
    assert!(!records.is_empty());
    Ok(records
        .iter()
        .map(|record| without_addresses(record.normalised()))
        .collect())
}

/// Pointers differ from run to run as much as the kernel likes.
fn without_addresses(mut record: Normalised) -> Normalised {
    let words = record
        .args
        .split(' ')
        .map(|word| match word.split_once('=') {
            Some((name, value)) if value.starts_with("0x") => format!("{name}=0x"),
            _ => word.to_owned(),
        });
    record.args = words.collect::<Vec<_>>().join(" ");
    record
}

fn counts(records: &[Normalised]) -> BTreeMap<(String, String, i32), usize> {
    let mut counts = BTreeMap::new();
    for record in records {
        let key = (record.call.clone(), record.args.clone(), record.result);
        *counts.entry(key).or_insert(0) += 1;
    }
    counts
}

#[test]
fn without_a_daemon_the_driver_sees_the_same_calls() -> Result<()> {
    // Must show: journals with and without shim are equal when no daemon is there.
    let world = World::prepare(Setup::gpus(1, 16 * GIB))?;
    for route in ROUTES {
        let plain = journal_of(&world, world.outside(&training(&world, route)))?;
        let mut with_shim = world.outside(&training(&world, route));
        with_shim
            .env("LD_PRELOAD", &world.artifacts.shim)
            .env("AEGIS_SHIM_SOCKET", world.shim_socket())
            .env("AEGIS_JOB_TOKEN", "0123456789abcdef0123456789abcdef");
        let shim = journal_of(&world, with_shim)?;
        assert_eq!(plain, shim, "{route}");
    }
    Ok(())
}

#[test]
fn with_a_daemon_only_harmless_identity_queries_are_added() -> Result<()> {
    // Must show: … and differ only by harmless identity queries when one is.
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    for route in ROUTES {
        let command = training(&world, route);
        let job = world.submit(&["--exclusive"], &command)?;
        assert_eq!(world.wait(job)?, 0, "{route}");
        let seen = e2e::until("the job's journal", || {
            let pids: Vec<u32> = world.machine.journal()?.iter().map(|r| r.pid).collect();
            Ok(pids.last().copied())
        });
        let _ = seen?;
        let records = world.machine.journal()?;
        let job_pid = newest(&records).context("the job's process")?;
        let managed: Vec<_> = records
            .iter()
            .filter(|r| r.pid == job_pid)
            .map(|r| without_addresses(r.normalised()))
            .collect();
        let mut plain = world.outside(&command);
        plain.stdout(std::process::Stdio::null());
        // Outside processes close a rootless daemon's GPU only to new jobs.
        let plain = journal_of(&world, plain)?;
        let (plain, managed) = (counts(&plain), counts(&managed));
        for (call, number) in &plain {
            let with = managed.get(call).copied().unwrap_or(0);
            assert!(
                with >= *number,
                "{route}: {call:?} was dropped: {number} -> {with}"
            );
        }
        for (call, number) in &managed {
            let extra = number - plain.get(call).copied().unwrap_or(0);
            assert!(
                extra == 0 || HARMLESS.contains(&call.0.as_str()),
                "{route}: {extra} more of {call:?}"
            );
        }
    }
    Ok(())
}

/// The process whose first record is the latest.
fn newest(records: &[simgpu_core::journal::Record]) -> Option<u32> {
    let firsts = records.iter().filter(|r| r.sequence == 0);
    firsts.max_by_key(|r| r.time_ns).map(|r| r.pid)
}

#[test]
fn a_disabled_or_stray_shim_changes_nothing() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let plain = journal_of(&world, world.outside(&training(&world, "dlsym")))?;
    // No job: the daemon does not know this token.
    for variables in [
        vec![("AEGIS_JOB_TOKEN", "ffffffffffffffffffffffffffffffff")],
        vec![("AEGIS_SHIM_DISABLE", "1")],
        vec![],
    ] {
        let mut command = world.outside(&training(&world, "dlsym"));
        command
            .env("LD_PRELOAD", &world.artifacts.shim)
            .env("AEGIS_SHIM_SOCKET", world.shim_socket())
            .envs(variables.clone());
        assert_eq!(plain, journal_of(&world, command)?, "{variables:?}");
    }
    Ok(())
}

#[test]
fn tinygrad_trains_under_the_shim() -> Result<()> {
    // A framework nobody here wrote.
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let Some(python) = world.artifacts.python.clone() else {
        e2e::skip!("tinygrad is not installed in target/venv: run cargo xtask setup");
    };
    let progress = world.file("p");
    let command: Vec<std::ffi::OsString> = vec![
        python.into(),
        e2e::Artifacts::tinygrad_script().into(),
        "--steps".into(),
        "5".into(),
        "--progress".into(),
        progress.clone().into(),
    ];
    let job = world.submit(&[], &command)?;
    let (view, outcome) = world.done(job)?;
    let log = std::fs::read_to_string(world.log_of(job, 1)?)?;
    assert_eq!(outcome, aegis_common::job::Outcome::Ok, "{log}");
    assert!(e2e::read_progress(&progress)?.completed());
    assert!(
        view.attempts[0].peak > 0,
        "the shim counted its memory: {view:?}"
    );
    Ok(())
}
