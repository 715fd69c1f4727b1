//! Keepers as the daemon uses them, with real processes of the built `aegisd`.

mod adopt;
mod bench;
mod disk;
mod environment;
mod failures;
mod once;
mod stop;
mod suspend;

use aegis_common::job::Exit;
use bench::{Bench, sh};

#[tokio::test]
async fn the_exit_code_and_the_output_are_the_commands() {
    let mut bench = Bench::new();
    for (job, code) in [(1, 0), (2, 7), (3, 255)] {
        bench.start(job, sh(&format!("echo out; echo err >&2; exit {code}")));
        bench.expect_started(job).await;
        assert_eq!(bench.expect_ended(job).await, Exit::Code(code));
        assert_eq!(bench.log(job), "out\nerr\n");
    }
}

#[tokio::test]
async fn a_signal_is_told_from_a_code() {
    let mut bench = Bench::new();
    for (job, signal) in [(1, 15), (2, 9), (3, 11)] {
        bench.start(job, sh(&format!("kill -{signal} $$")));
        bench.expect_started(job).await;
        assert_eq!(bench.expect_ended(job).await, Exit::Signal(signal));
    }
}

#[tokio::test]
async fn what_the_command_leaves_behind_is_ended_before_the_end_is_reported() {
    let mut bench = Bench::new();
    let script = format!(
        "setsid sh -c 'trap \"\" TERM; echo $$ > {fifo}; while :; do sleep 1000; done' & 
         read pid < {gate}; exit 5",
        fifo = bench.fifo.display(),
        gate = bench.gate.display(),
    );
    bench.start(1, sh(&script));
    bench.expect_started(1).await;
    let left = bench.read_pid().await;
    bench.open_gate();
    assert_eq!(bench.expect_ended(1).await, Exit::Code(5));
    assert!(!bench::exists(left), "process {left} outlived its job");
}
