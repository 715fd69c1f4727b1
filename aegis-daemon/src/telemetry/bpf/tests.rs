//! The real programs on the running kernel. They need root and the object; elsewhere they are
//! skipped and counted.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::procfs;

const ATTEMPT: (JobId, u32) = (JobId(7), 2);
/// Only a test that fails waits that long.
const DEADLINE: Duration = Duration::from_secs(60);

type Events = UnboundedReceiver<LifecycleEvent>;

/// Starts the programs, or says why the test is skipped.
fn start(ring: Option<u32>) -> Option<(Lifecycle, Events)> {
    let (sender, events) = unbounded_channel();
    match Lifecycle::start_with(&sender, ring) {
        Ok(lifecycle) => Some((lifecycle, events)),
        // An object that was built and a root's kernel that does not take it are a failure.
        Err(error @ Unavailable::Refused(_)) => panic!("{error}"),
        Err(error) => {
            println!("SKIPPED: {error}");
            None
        }
    }
}

/// A shell that is followed before it runs the script.
fn followed(lifecycle: &Lifecycle, script: &str) -> (Child, ProcessKey) {
    let mut shell = Command::new("sh")
        .args(["-c", &format!("read line; {script}")])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let key = procfs::identify(shell.id()).unwrap();
    assert!(lifecycle.follow(ATTEMPT, key));
    shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
    (shell, key)
}

async fn next(events: &mut Events) -> LifecycleEvent {
    let event = tokio::time::timeout(DEADLINE, events.recv()).await;
    event.expect("an event within the deadline").unwrap()
}

async fn exit_of(events: &mut Events, process: ProcessKey) -> Exited {
    loop {
        match next(events).await {
            LifecycleEvent::Exited(exited) if exited.process == process => return exited,
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_process_that_leaves_its_tree_and_environment_is_followed_to_its_end() {
    let Some((lifecycle, mut events)) = start(None) else {
        return;
    };
    let script = "(setsid env -i sh -c 'sleep 1000 & exit 0' &) ; exit 3";
    let (mut shell, key) = followed(&lifecycle, script);
    let mut main = None;
    let mut sleep = None;
    while main.is_none() || sleep.is_none() {
        match next(&mut events).await {
            LifecycleEvent::Exited(exited) if exited.process == key => main = Some(exited.exit),
            LifecycleEvent::Executed {
                command, process, ..
            } if command == "sleep" => sleep = Some(process),
            _ => {}
        }
    }
    shell.wait().unwrap();
    assert_eq!(main, Some(Exit::Code(3)));
    let sleep = sleep.unwrap();
    assert_eq!(procfs::identify(sleep.pid), Some(sleep));
    assert_eq!(lifecycle.attempt_of(sleep), Some(ATTEMPT));
    // The shells between may still be ending.
    while lifecycle.processes(ATTEMPT) != [sleep] {
        next(&mut events).await;
    }
    let pid = Pid::from_raw(i32::try_from(sleep.pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    let exited = exit_of(&mut events, sleep).await;
    assert_eq!(exited.exit, Exit::Signal(9));
    let (pid, uid) = (std::process::id(), 0);
    assert_eq!(exited.sender, Some(Sender::Process { pid, uid }));
    assert_eq!(lifecycle.processes(ATTEMPT), []);
    assert_eq!(lifecycle.attempt_of(sleep), None);
}

#[tokio::test]
async fn a_thousand_short_lives_end_as_they_did_and_none_is_lost() {
    let Some((lifecycle, mut events)) = start(None) else {
        return;
    };
    let script = "i=0; while [ $i -lt 500 ]; do \
                  sh -c \"exit $((i % 250))\"; sh -c 'kill -TERM $$'; i=$((i+1)); done; exit 0";
    let (mut shell, key) = followed(&lifecycle, script);
    let mut codes = vec![0; 250];
    let mut terminated = 0;
    loop {
        let LifecycleEvent::Exited(exited) = next(&mut events).await else {
            continue;
        };
        assert_eq!(exited.attempt, ATTEMPT);
        if exited.process == key {
            break;
        }
        match exited.exit {
            Exit::Code(code) => codes[usize::try_from(code).unwrap()] += 1,
            Exit::Signal(signal) => {
                assert_eq!(signal, 15);
                let (pid, uid) = (exited.process.pid, 0);
                assert_eq!(exited.sender, Some(Sender::Process { pid, uid }));
                terminated += 1;
            }
            Exit::Unknown => unreachable!("the kernel knows"),
        }
    }
    shell.wait().unwrap();
    assert_eq!(codes, vec![2; 250]);
    assert_eq!(terminated, 500);
    assert_eq!(lifecycle.lost(), 0);
    assert_eq!(lifecycle.processes(ATTEMPT), []);
}

// One thread: while the test waits for the shell nobody reads the ring.
#[tokio::test(flavor = "current_thread")]
async fn a_full_ring_loses_events_by_count_and_the_set_stays_right() {
    const RING: u32 = 4096;
    let Some((lifecycle, mut events)) = start(Some(RING)) else {
        return;
    };
    let script = "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done; \
                  (setsid sleep 1000 &); exit 0";
    let (mut shell, _) = followed(&lifecycle, script);
    shell.wait().unwrap();
    // 100 times fork, exec, exit; the shell between; sleep's fork and exec; the shell itself.
    let mut received = 0;
    let lost = loop {
        match next(&mut events).await {
            LifecycleEvent::Lost { total } => break total,
            _ => received += 1,
        }
    };
    assert!(lost > 0 && lost == lifecycle.lost());
    // 72 bytes each, the header included.
    assert!(received <= RING / 72 + 1, "{received}");
    // Nobody heard of it, and it is known.
    let left = lifecycle.processes(ATTEMPT);
    assert_eq!(left.len(), 1, "{left:?}");
    let pid = Pid::from_raw(i32::try_from(left[0].pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    // From now on events arrive again.
    let exited = exit_of(&mut events, left[0]).await;
    assert_eq!(exited.exit, Exit::Signal(9));
    assert_eq!(lifecycle.processes(ATTEMPT), []);
}
