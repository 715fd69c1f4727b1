//! Asking a job to save its state and exit.

use aegis_common::action::StopHow;
use aegis_common::id::JobId;
use aegis_common::job::{Exit, OnSuspend};
use aegis_common::wire::Launch;
use aegis_daemon::jobs::FoundState;
use rustix::process::{Pid, Signal, kill_process};

use crate::bench::{Bench, launch, sh};

const USR1: i32 = 10;

fn suspend(grace_s: u32) -> StopHow {
    StopHow::Suspend {
        on_suspend: OnSuspend {
            signal: USR1,
            grace_s,
        },
    }
}

/// Says `asked` when it is, tells its pid then, has saved when it gets SIGUSR2, and ends at SIGTERM;
/// a child that is asked says so. Signals are waited for, so that none comes too early.
fn saving(bench: &Bench) -> Launch {
    let program = "
import os, signal, sys
wanted = {signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
child = os.fork() == 0
def tell():
    with open(sys.argv[1], 'w') as fifo:
        fifo.write(f'{os.getpid()}\\n')
tell()
while True:
    got = signal.sigwait(wanted)
    if got == signal.SIGUSR1:
        print('child' if child else 'asked', flush=True)
        tell()
    elif child:
        sys.exit()
    elif got == signal.SIGUSR2:
        print('saved', flush=True)
        sys.exit()
    else:
        print('term', flush=True)
        sys.exit(3)
";
    let fifo = bench.fifo.display().to_string();
    launch(&[b"python3", b"-c", program.as_bytes(), fifo.as_bytes()])
}

fn has_saved(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::USR2).unwrap();
}

/// Starts it and waits until both of its processes listen.
async fn listening(bench: &mut Bench, job: u64) {
    let program = saving(bench);
    bench.start(job, program);
    bench.expect_started(job).await;
    bench.read_pid().await;
    bench.read_pid().await;
}

#[tokio::test]
async fn the_main_process_is_asked_once_and_may_take_its_time() {
    let mut bench = Bench::new();
    listening(&mut bench, 1).await;
    bench.daemon().keepers.stop(JobId(1), 1, suspend(3600));
    let pid = bench.read_pid().await;
    bench.daemon().keepers.stop(JobId(1), 1, suspend(3600));
    has_saved(pid);
    assert_eq!(bench.expect_ended(1).await, Exit::Code(0));
    assert_eq!(bench.log(1), "asked\nsaved\n");
}

#[tokio::test]
async fn who_does_not_exit_in_time_is_terminated() {
    let mut bench = Bench::new();
    listening(&mut bench, 1).await;
    bench.daemon().keepers.stop(JobId(1), 1, suspend(1));
    assert_eq!(bench.expect_ended(1).await, Exit::Code(3));
    assert_eq!(bench.log(1), "asked\nterm\n");
}

#[tokio::test]
async fn who_does_not_know_the_signal_is_ended_by_it() {
    let mut bench = Bench::new();
    let fifo = bench.fifo.display().to_string();
    bench.start(1, sh(&format!("echo $$ > {fifo}; exec sleep 1000")));
    bench.expect_started(1).await;
    bench.read_pid().await;
    bench.daemon().keepers.stop(JobId(1), 1, suspend(3600));
    assert_eq!(bench.expect_ended(1).await, Exit::Signal(USR1));
}

#[tokio::test]
async fn a_stop_cuts_a_suspension_short() {
    let mut bench = Bench::new();
    listening(&mut bench, 1).await;
    bench.daemon().keepers.stop(JobId(1), 1, suspend(3600));
    bench.read_pid().await;
    bench.daemon().keepers.stop(JobId(1), 1, StopHow::Terminate);
    bench.daemon().keepers.stop(JobId(1), 1, suspend(3600));
    assert_eq!(bench.expect_ended(1).await, Exit::Code(3));
    assert_eq!(bench.log(1), "asked\nterm\n");
}

#[tokio::test]
async fn a_suspension_goes_on_without_the_daemon_and_is_not_begun_anew() {
    let mut bench = Bench::new();
    listening(&mut bench, 1).await;
    bench.daemon().keepers.stop(JobId(1), 1, suspend(3600));
    let pid = bench.read_pid().await;

    bench.daemon = Some(bench.another_daemon());
    let daemon = bench.daemon();
    let found = daemon.keepers.adopt(&[(JobId(1), 1)]).unwrap();
    assert_eq!(found[0].state, FoundState::Running);
    daemon.keepers.stop(JobId(1), 1, suspend(1));
    has_saved(pid);
    assert_eq!(bench.expect_ended(1).await, Exit::Code(0));
    assert_eq!(bench.log(1), "asked\nsaved\n");
}
