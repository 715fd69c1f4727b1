//! The traces say which launches were made, in order, and change no call.

use std::sync::atomic::Ordering::SeqCst;

use aegis_common::abi::trace::{TRACE_ENTRIES, Trace};
use aegis_shim_tests::client::{Client, Setup, WAYS, Way};
use aegis_shim_tests::daemon::FakeDaemon;

/// The launches of a trace, oldest first. The first one traced is not told from those before it.
fn launches(trace: &Trace) -> Vec<u64> {
    let marks = trace.marks.load(SeqCst) as usize;
    let sums = (marks.saturating_sub(TRACE_ENTRIES)..marks)
        .map(|mark| trace.entries[mark % TRACE_ENTRIES].load(SeqCst))
        .collect::<Vec<_>>();
    assert_eq!(sums.last().copied().unwrap_or(0), trace.sum.load(SeqCst));
    sums.windows(2)
        .map(|pair| pair[1].wrapping_sub(pair[0]))
        .collect()
}

/// A client whose thread has its line: a thread's first launch gets it one and is not traced.
fn start(way: Way, daemon: &FakeDaemon) -> Client {
    let mut client = Setup::with_shim(way, &daemon.path()).start();
    client.begin();
    client.ok("launch 2");
    client
}

#[test]
fn what_is_launched_is_traced_in_order() {
    for way in WAYS {
        let daemon = FakeDaemon::start();
        let mut client = start(way, &daemon);
        for command in [
            "launch_grid 1 2 3",
            "launch_config 1 2 3",
            "launch_grid 2 1 3",
            "launch_ptsz 1",
            "copy 3",
            "host 1",
            "graph 2",
        ] {
            client.ok(command);
        }
        let ledger = daemon.ledger(0);
        let trace = ledger.traces().next().unwrap();
        let made = launches(trace);
        let [kernel, config, other_grid, per_thread, graph, same_graph] = made[..] else {
            panic!("{made:x?} by {way:?}")
        };
        assert_eq!(kernel >> 32, 0x1234, "{way:?}");
        assert_eq!(config, kernel, "however it is launched, by {way:?}");
        assert_eq!(per_thread, kernel, "{way:?}");
        assert_eq!(other_grid >> 32, 0x1234);
        assert_ne!(other_grid, kernel, "another grid, by {way:?}");
        assert_eq!((graph, same_graph), (1 << 32, 1 << 32), "{way:?}");
        client.end();
    }
}

#[test]
fn a_config_that_is_null_reaches_the_driver() {
    let daemon = FakeDaemon::start();
    let mut client = start(Way::Gpa12, &daemon);
    assert_eq!(client.run("launch_config 0").status, 1, "invalid value");
    client.end();
}

#[test]
fn old_launches_are_overwritten_and_stay_in_the_sum() {
    let daemon = FakeDaemon::start();
    let mut client = start(Way::Direct, &daemon);
    client.ok(&format!("launch {}", 2 * TRACE_ENTRIES));
    let ledger = daemon.ledger(0);
    let trace = ledger.traces().next().unwrap();
    let made = launches(trace);
    assert_eq!(made.len(), TRACE_ENTRIES - 1);
    assert!(made.iter().all(|launch| *launch == made[0]));
    let marks = trace.marks.load(SeqCst);
    assert_eq!(marks, 2 * TRACE_ENTRIES as u64 + 1);
    assert_eq!(trace.sum.load(SeqCst), made[0].wrapping_mul(marks));
    client.end();
}

#[test]
fn each_thread_has_its_own_and_those_without_one_launch_all_the_same() {
    let daemon = FakeDaemon::start();
    let mut client = start(Way::Dlsym, &daemon);
    // More than there are traces.
    client.tell("threads 40 launch 300000");
    for _ in 0..40 {
        assert_eq!(client.outcome().status, 0);
    }
    assert_eq!(client.line(), "joined");
    let ledger = daemon.ledger(0);
    let kernels = ledger.launch_lines().map(|line| line.kernels.load(SeqCst));
    assert_eq!(kernels.sum::<u64>(), 40 * 300_000 + 2);
    let mut seen = 0;
    for trace in ledger.traces() {
        let made = launches(trace);
        // The main thread's has one launch; of a short-lived thread another takes the place over.
        let Some(first) = made.first() else { continue };
        assert!(made.iter().all(|launch| launch == first));
        let marks = trace.marks.load(SeqCst);
        assert_eq!(trace.sum.load(SeqCst), first.wrapping_mul(marks));
        seen += 1;
    }
    assert!(seen > 0);
    client.end();
}

#[test]
fn an_older_daemon_gives_no_room_and_nothing_is_lost() {
    let daemon = FakeDaemon::of_abi_1_0();
    let mut client = start(Way::Gpa12, &daemon);
    client.ok("launch 100");
    let kernels = daemon
        .ledger(0)
        .launch_lines()
        .map(|line| line.kernels.load(SeqCst))
        .sum::<u64>();
    assert_eq!(kernels, 102);
    client.end();
}
