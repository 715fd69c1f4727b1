//! What a new daemon finds.

use std::os::fd::OwnedFd;

use aegis_common::action::StopHow;
use aegis_common::id::{GpuIndex, JobId};
use aegis_common::job::Exit;
use aegis_daemon::jobs::{FoundState, keeper_pids};

use crate::bench::{Bench, exists, launch, sh};

#[tokio::test]
async fn running_jobs_outlive_the_daemon_and_are_adopted() {
    let mut bench = Bench::new();
    let fifo = bench.fifo.display().to_string();
    let gate = bench.gate.display().to_string();
    let forever = sh(&format!("echo $$ > {fifo}; exec sleep 1000"));
    bench.start(1, forever);
    bench.expect_started(1).await;
    let pid = bench.read_pid().await;
    let while_away = sh(&format!("echo $$ > {fifo}; read x < {gate}; exit 6"));
    bench.start(2, while_away);
    bench.expect_started(2).await;
    let ends_alone = bench.read_pid().await;
    bench.start(3, launch(&[b"nosuch"]));
    bench.daemon().expect_start_failed().await;
    let keeper = bench.daemon().keepers.keeper_pid(JobId(2), 1).unwrap();

    bench.daemon = None;
    bench.open_gate();
    wait_for_end(keeper).await;
    assert!(exists(pid) && !exists(ends_alone));

    bench.daemon = Some(bench.another_daemon());
    let daemon = bench.daemon();
    let expected = [(JobId(1), 1), (JobId(4), 2)];
    let found = daemon.keepers.adopt(&expected).unwrap();
    let states: Vec<_> = found
        .iter()
        .map(|found| (found.job.0, found.attempt, found.state.clone()))
        .collect();
    let FoundState::StartFailed { error } = &found[2].state else {
        panic!("{found:?}");
    };
    assert!(error.contains("nosuch"), "{error}");
    let failed = FoundState::StartFailed {
        error: error.clone(),
    };
    let exit = Exit::Code(6);
    assert_eq!(
        states,
        [
            (1, 1, FoundState::Running),
            (2, 1, FoundState::Ended { exit }),
            (3, 1, failed),
            (4, 2, FoundState::NeverStarted),
        ]
    );
    assert_eq!(found[0].gpus, [GpuIndex(3), GpuIndex(1)]);
    assert_eq!(daemon.keepers.belongs(pid), Some((JobId(1), 1)));
    assert_eq!(daemon.keepers.tokens().len(), 1);

    daemon.keepers.stop(JobId(1), 1, StopHow::Terminate);
    assert_eq!(daemon.expect_ended(1).await, Exit::Signal(15));
    assert!(!exists(pid));
    for job in 1..=3 {
        daemon.keepers.forget(JobId(job), 1);
    }
    let mut third = bench.another_daemon();
    assert_eq!(third.keepers.adopt(&[]).unwrap(), []);
}

#[tokio::test]
async fn processes_of_a_keeper_killed_while_there_was_no_daemon_are_ended() {
    let mut bench = Bench::new();
    let fifo = bench.fifo.display().to_string();
    let script = format!("setsid sh -c 'echo $$ > {fifo}; exec sleep 1000' & exec sleep 1000");
    bench.start(1, sh(&script));
    bench.expect_started(1).await;
    let orphan = bench.read_pid().await;
    let keeper = bench.daemon().keepers.keeper_pid(JobId(1), 1).unwrap();
    bench.daemon = None;
    let pid = rustix::process::Pid::from_raw(i32::try_from(keeper).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    wait_for_end(keeper).await;
    assert!(exists(orphan));

    let mut daemon = bench.another_daemon();
    let found = daemon.keepers.adopt(&[]).unwrap();
    assert_eq!(found[0].state, FoundState::Running);
    assert_eq!(daemon.expect_ended(1).await, Exit::Unknown);
    assert!(!exists(orphan));
}

#[tokio::test]
async fn held_ledgers_stay_with_the_keeper() {
    let mut bench = Bench::new();
    let gate = bench.gate.display().to_string();
    bench.start(1, sh(&format!("read x < {gate}")));
    bench.expect_started(1).await;
    let runtime = bench.path().join("r".repeat(120));
    let [(JobId(1), 1, keeper)] = keeper_pids(&runtime).unwrap()[..] else {
        panic!("not one keeper");
    };
    let keepers = &mut bench.daemon().keepers;
    assert_eq!(keepers.keeper_pid(JobId(1), 1), Some(keeper));
    for name in ["first", "second"] {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let memfd: OwnedFd = rustix::fs::memfd_create(name, flags).unwrap();
        keepers.hold(JobId(1), 1, memfd, name);
    }
    keepers.release(JobId(1), 1, "first");
    until(|| held(keeper) == ["second"]).await;
    bench.daemon = None;
    let mut daemon = bench.another_daemon();
    daemon.keepers.adopt(&[]).unwrap();
    assert_eq!(held(keeper), ["second"]);
    // The new daemon is connected to the keeper.
    daemon.keepers.release(JobId(1), 1, "second");
    until(|| held(keeper).is_empty()).await;
    bench.open_gate();
    assert_eq!(daemon.expect_ended(1).await, Exit::Code(0));
    assert_eq!(keeper_pids(&runtime).unwrap(), []);
}

/// The memfds of a process.
fn held(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    entries
        .filter_map(|entry| {
            let target = std::fs::read_link(entry.ok()?.path()).ok()?;
            let name = target.to_str()?.strip_prefix("/memfd:")?;
            Some(name.strip_suffix(" (deleted)")?.to_owned())
        })
        .filter(|name| name != "aegis-order")
        .collect()
}

/// Waits for a condition nobody tells about.
async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), wait)
        .await
        .unwrap();
}

async fn wait_for_end(pid: u32) {
    until(|| !exists(pid)).await;
}
