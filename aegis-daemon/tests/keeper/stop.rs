//! Ending process trees that do not want to end.

use std::collections::BTreeSet;

use aegis_common::action::StopHow;
use aegis_common::id::JobId;
use aegis_common::job::Exit;

use crate::bench::{Bench, exists, sh};

/// Four processes: the shell; one in its own session; an orphan (double fork) in its own session;
/// one without the job's environment. All ignore SIGTERM and tell their pids.
fn stubborn(bench: &Bench) -> String {
    let fifo = bench.fifo.display();
    let body = format!("trap \"\" TERM; echo $$ > {fifo}; while :; do sleep 1000; done");
    format!(
        "trap '' TERM
         setsid sh -c '{body}' &
         (setsid sh -c '{body}' &)
         env -i /bin/sh -c 'PATH=/usr/bin:/bin; {body}' &
         echo $$ > {fifo}
         while :; do sleep 1000; done"
    )
}

async fn pids(bench: &mut Bench, count: usize) -> BTreeSet<u32> {
    let mut pids = BTreeSet::new();
    for _ in 0..count {
        pids.insert(bench.read_pid().await);
    }
    assert_eq!(pids.len(), count);
    assert!(pids.iter().all(|pid| exists(*pid)));
    pids
}

#[tokio::test]
async fn after_a_stop_nobody_of_the_tree_is_left() {
    let mut bench = Bench::new();
    let script = stubborn(&bench);
    bench.start(1, sh(&script));
    bench.expect_started(1).await;
    let pids = pids(&mut bench, 4).await;
    for pid in &pids {
        assert_eq!(bench.daemon().keepers.belongs(*pid), Some((JobId(1), 1)));
    }
    let own = std::process::id();
    assert_eq!(bench.daemon().keepers.belongs(own), None);
    bench.daemon().keepers.stop(JobId(1), 1, StopHow::Terminate);
    bench.daemon().keepers.stop(JobId(1), 1, StopHow::Terminate);
    assert_eq!(bench.expect_ended(1).await, Exit::Signal(9));
    let left: Vec<_> = pids.iter().filter(|pid| exists(**pid)).collect();
    assert!(left.is_empty(), "left: {left:?}");
}

#[tokio::test]
async fn sigterm_comes_first_and_the_command_may_choose_its_exit_code() {
    let mut bench = Bench::new();
    let fifo = bench.fifo.display().to_string();
    let script =
        format!("trap 'exit 3' TERM; echo $$ > {fifo}; while :; do sleep 1000 & wait; done");
    bench.start(1, sh(&script));
    bench.expect_started(1).await;
    bench.read_pid().await;
    bench.daemon().keepers.stop(JobId(1), 1, StopHow::Terminate);
    assert_eq!(bench.expect_ended(1).await, Exit::Code(3));
}

#[tokio::test]
async fn a_stopped_process_is_ended_too() {
    let mut bench = Bench::new();
    let fifo = bench.fifo.display().to_string();
    let script = format!("trap 'exit 3' TERM; echo $$ > {fifo}; kill -STOP $$; sleep 1000 & wait");
    bench.start(1, sh(&script));
    bench.expect_started(1).await;
    bench.read_pid().await;
    bench.daemon().keepers.stop(JobId(1), 1, StopHow::Terminate);
    let exit = bench.expect_ended(1).await;
    // Killed by the trap's exit, or before the shell had set it up again.
    assert!(
        matches!(exit, Exit::Code(3) | Exit::Signal(9 | 15)),
        "{exit:?}"
    );
}

#[tokio::test]
async fn a_stop_right_after_the_start_is_not_lost() {
    let mut bench = Bench::new();
    for job in 1..=5 {
        bench.start(job, sh("sleep 1000"));
        bench
            .daemon()
            .keepers
            .stop(JobId(job), 1, StopHow::Terminate);
        bench.expect_started(job).await;
        let exit = bench.expect_ended(job).await;
        assert!(matches!(exit, Exit::Signal(9 | 15)), "{exit:?}");
    }
}

#[tokio::test]
async fn a_process_that_is_always_somebody_else_is_caught() {
    let mut bench = Bench::new();
    // Each generation starts the next and is gone; it ends by itself if the test does.
    let hare = bench.path().join("hare.sh");
    let alive = bench.path().display();
    let text = format!("trap '' TERM\n[ -d {alive} ] && sh \"$0\" &\n");
    std::fs::write(&hare, text).unwrap();
    let fifo = bench.fifo.display();
    let script = format!(
        "trap '' TERM; for i in 1 2 3; do setsid sh {} & done; echo $$ > {fifo}
         while :; do sleep 1000; done",
        hare.display()
    );
    bench.start(1, sh(&script));
    bench.expect_started(1).await;
    bench.read_pid().await;
    bench.daemon().keepers.stop(JobId(1), 1, StopHow::Terminate);
    assert_eq!(bench.expect_ended(1).await, Exit::Signal(9));
    let name = hare.display().to_string();
    let left = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.ok()?.path().join("cmdline");
        let line = std::fs::read(path).ok()?;
        String::from_utf8_lossy(&line).contains(&name).then_some(())
    });
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn a_killed_keeper_takes_its_job_along() {
    let mut bench = Bench::new();
    let fifo = bench.fifo.display().to_string();
    // As above, but all keep the job's token.
    let body = format!("trap \"\" TERM; echo $$ > {fifo}; while :; do sleep 1000; done");
    let script = format!("setsid sh -c '{body}' & (setsid sh -c '{body}' &)\n{body}");
    bench.start(1, sh(&script));
    bench.expect_started(1).await;
    let pids = pids(&mut bench, 3).await;
    let keeper = bench.daemon().keepers.keeper_pid(JobId(1), 1).unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(keeper).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_eq!(bench.expect_ended(1).await, Exit::Unknown);
    let left: Vec<_> = pids.iter().filter(|pid| exists(**pid)).collect();
    assert!(left.is_empty(), "left: {left:?}");
    assert_eq!(bench.daemon().keepers.keeper_pid(JobId(1), 1), None);

    let mut next = bench.another_daemon();
    let found = next.keepers.adopt(&[]).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].state, aegis_daemon::jobs::FoundState::Lost);
}
