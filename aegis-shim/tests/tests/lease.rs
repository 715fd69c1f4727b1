//! Early denial, growth, waiting, and a daemon that is slow or dead.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;

use aegis_common::abi::lease::{FLAG_HELD, FLAG_OLDEST, LEASE_BINDS_NS};
use aegis_common::abi::ledger::Bypass;
use aegis_common::abi::message::{Op, Verdict};
use aegis_shim_tests::client::{Client, Outcome, Setup, Way};
use aegis_shim_tests::daemon::{Act, FakeDaemon};
use aegis_shim_tests::sys::{Ledger, monotonic_ns};

/// `CUDA_ERROR_OUT_OF_MEMORY` with both outputs untouched.
const DENIED: Outcome = Outcome {
    status: 2,
    out: 0xdead,
    out2: 0xdead,
};

fn start(daemon: &FakeDaemon) -> Client {
    let mut client = Setup::with_shim(Way::Gpa12, &daemon.path()).start();
    client.begin();
    client
}

fn bypassed(ledger: &Ledger, reason: Bypass) -> u64 {
    ledger.header().bypass[reason as usize].load(SeqCst)
}

#[test]
fn within_the_limit_the_daemon_is_not_asked() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(10_000, SeqCst);
    let mut client = start(&daemon);
    client.ok("alloc 6000");
    client.ok("alloc 4000");
    assert!(daemon.pending_requests().is_empty());
    client.end();
}

#[test]
fn over_the_limit_each_allocation_call_is_denied_and_nothing_else() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(10_000, SeqCst);
    let mut client = start(&daemon);
    let block = client.ok("alloc 10000");
    for command in [
        "alloc 1",
        "managed 1",
        "async 1 7",
        "async_ptsz 1 7",
        "pool 1 7",
        "create 1 1 0",
        "array 1 1",
    ] {
        assert_eq!(client.run(command), DENIED, "{command}");
    }
    assert_eq!(client.run("pitch 1 1").status, 2);
    client.ok("launch 1");
    client.ok("create 4096 2 0");
    client.ok("context 1");
    client.ok("alloc 20000");
    client.ok(&format!("free {block}"));
    let ledger = daemon.ledger(0);
    let line = ledger.gpu(0);
    assert_eq!(line.denials.load(SeqCst), 8);
    assert_eq!(line.inflight.load(SeqCst), 0);
    assert_eq!(line.driver_ooms.load(SeqCst), 0);
    client.end();
}

#[test]
fn a_grant_lets_the_request_through() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(10_000, SeqCst);
    daemon.on_grow(|request| Act::Answer(Verdict::Granted, Some(request.held + 1000)));
    let mut client = start(&daemon);
    client.ok("alloc 9000");
    client.ok("alloc 5000");
    let request = daemon.next_request();
    assert_eq!(
        (request.op, request.bytes, request.held),
        (Op::Grow, 5000, 14_000)
    );
    assert_eq!((request.gpu, request.try_number), ([0xa0; 16], 1));
    client.ok("alloc 1000");
    assert!(daemon.pending_requests().is_empty());
    client.end();
}

#[test]
fn refusals_until_a_success_of_that_size_are_one_episode() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(10_000, SeqCst);
    let mut client = start(&daemon);
    client.ok("launch 3");
    assert_eq!(daemon.next_request().op, Op::FirstLaunch);
    let block = client.ok("alloc 8000");
    assert_eq!(client.run("alloc 5000"), DENIED);
    assert_eq!(daemon.next_request().try_number, 1);
    let refused = daemon.next_request();
    assert_eq!(
        (refused.op, refused.bytes, refused.gpu),
        (Op::Refused, 5000, [0xa0; 16])
    );
    assert_eq!(client.run("alloc 4000"), DENIED);
    assert_eq!(daemon.next_request().try_number, 2);
    client.ok("alloc 100");
    let ledger = daemon.ledger(0);
    let line = ledger.gpu(0);
    assert_eq!(line.episodes.load(SeqCst), 1);
    assert_eq!(line.denials.load(SeqCst), 2);
    assert_eq!(line.episode_bytes.load(SeqCst), 5000);
    assert_eq!(
        line.unrecovered.load(SeqCst),
        1,
        "a smaller success recovers nothing"
    );
    assert_eq!(line.launches_at_refusal.load(SeqCst), 3);
    assert!(line.last_refusal_ns.load(SeqCst) > 0);
    client.ok(&format!("free {block}"));
    client.ok("alloc 5000");
    assert_eq!(line.unrecovered.load(SeqCst), 0);
    assert_eq!(client.run("alloc 9000"), DENIED);
    assert_eq!(daemon.next_request().try_number, 1, "a new episode");
    assert_eq!(line.episodes.load(SeqCst), 2);
    client.end();
}

#[test]
fn the_drivers_own_refusal_is_an_episode_too() {
    let daemon = FakeDaemon::start();
    let mut client = Setup::with_shim(Way::Dlsym, &daemon.path())
        .env("FAKE_CUDA_BYTES", "1000000")
        .start();
    client.begin();
    assert_eq!(client.run("alloc 2000000"), DENIED);
    let request = daemon.next_request();
    assert_eq!((request.op, request.bytes), (Op::Refused, 2_000_000));
    let ledger = daemon.ledger(0);
    let line = ledger.gpu(0);
    assert_eq!(line.driver_ooms.load(SeqCst), 1);
    assert_eq!(line.denials.load(SeqCst), 0);
    assert_eq!(line.episodes.load(SeqCst), 1);
    assert_eq!(line.unrecovered.load(SeqCst), 1);
    assert_eq!(line.inflight.load(SeqCst), 0);
    client.end();
}

#[test]
fn a_waiting_request_holds_nothing_and_other_threads_go_on() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(10_000, SeqCst);
    let (decide, decision) = channel();
    let mut decision = Some(decision);
    daemon.on_grow(move |request| match (request.bytes, decision.take()) {
        (5000, Some(decision)) => Act::Wait(20_000, decision),
        (5000, None) => Act::Answer(Verdict::Denied, None),
        _ => Act::Answer(Verdict::Granted, Some(request.held)),
    });
    let mut client = start(&daemon);
    client.ok("alloc 9000");
    client.tell("spawn alloc 5000");
    let request = daemon.next_request();
    assert_eq!((request.op, request.bytes), (Op::Grow, 5000));
    let ledger = daemon.ledger(0);
    assert_eq!(
        ledger.gpu(0).inflight.load(SeqCst),
        0,
        "nothing in flight while it waits"
    );
    // Meanwhile another thread allocates within the lease, and beyond it.
    let block = client.ok("alloc 1000");
    client.ok("alloc 2000");
    assert_eq!(daemon.next_request().held, 12_000);
    client.ok(&format!("free {block}"));
    decide
        .send((Verdict::Granted, Some(20_000)))
        .expect("it waits");
    assert_eq!(client.outcome().status, 0);
    assert_eq!(ledger.gpu(0).used[0].load(SeqCst), 16_000);
    client.end();
}

#[test]
fn a_wait_can_end_in_denial() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(10_000, SeqCst);
    let (decide, decision) = channel();
    let mut decision = Some(decision);
    daemon.on_grow(move |_| Act::Wait(20_000, decision.take().expect("one request")));
    let mut client = start(&daemon);
    client.tell("alloc 50000");
    assert_eq!(daemon.next_request().op, Op::Grow);
    decide.send((Verdict::Denied, None)).expect("it waits");
    assert_eq!(client.outcome(), DENIED);
    client.end();
}

#[test]
fn when_a_live_daemon_is_late_only_the_oldest_passes() {
    for (flags, expected) in [(FLAG_HELD, 2), (FLAG_HELD | FLAG_OLDEST, 0)] {
        let daemon = FakeDaemon::start();
        daemon.line(0).limit.store(10_000, SeqCst);
        daemon.line(0).flags.store(flags, SeqCst);
        // It promises an answer at once and does not keep the promise.
        let (keep, decision) = channel();
        let mut decision = Some(decision);
        daemon.on_grow(move |_| Act::Wait(1, decision.take().expect("one request")));
        let mut client = start(&daemon);
        assert_eq!(client.run("alloc 50000").status, expected);
        assert_eq!(
            bypassed(&daemon.ledger(0), Bypass::OldestPassed),
            u64::from(expected == 0)
        );
        drop(keep);
        client.end();
    }
}

#[test]
fn a_dead_daemons_lease_binds_and_then_ends() {
    let mut daemon = FakeDaemon::start();
    daemon.line(0).limit.store(10_000, SeqCst);
    let mut client = start(&daemon);
    daemon.die();
    let heartbeat = &daemon.lease().header().heartbeat_ns;
    heartbeat.store(monotonic_ns(), SeqCst);
    client.ok("alloc 6000");
    assert_eq!(client.run("alloc 6000"), DENIED);
    heartbeat.store(monotonic_ns() - LEASE_BINDS_NS - 1, SeqCst);
    client.ok("alloc 6000");
    let ledger = daemon.ledger(0);
    assert_eq!(bypassed(&ledger, Bypass::DaemonGone), 1);
    assert_eq!(
        ledger.gpu(0).used[0].load(SeqCst),
        12_000,
        "accounting goes on"
    );
    client.end();
}

#[test]
fn a_daemon_that_always_hangs_up_counts_as_dead() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(10_000, SeqCst);
    daemon.on_grow(|_| Act::HangUp);
    let mut client = start(&daemon);
    assert_eq!(client.run("alloc 50000"), DENIED);
    daemon.lease().header().heartbeat_ns.store(1, SeqCst);
    client.ok("alloc 50000");
    client.end();
}

#[test]
fn a_restarted_daemon_is_asked_again() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(10_000, SeqCst);
    // It dies over the first request; its successor grants.
    let mut died = false;
    daemon.on_grow(move |request| {
        if std::mem::replace(&mut died, true) {
            Act::Answer(Verdict::Granted, Some(request.held))
        } else {
            Act::HangUp
        }
    });
    let mut client = start(&daemon);
    client.ok("alloc 50000");
    assert_eq!(daemon.pending_requests().len(), 2);
    client.end();
}

#[test]
fn a_daemon_that_forgot_the_job_has_no_say() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(10_000, SeqCst);
    daemon.on_grow(|_| Act::Answer(Verdict::Unknown, None));
    let mut client = start(&daemon);
    client.ok("alloc 50000");
    client.end();
}

#[test]
fn a_gpu_that_is_not_held_has_room_for_nothing() {
    let daemon = FakeDaemon::start();
    daemon.line(1).flags.store(0, SeqCst);
    let mut client = start(&daemon);
    client.ok("context 1");
    assert_eq!(client.run("alloc 1"), DENIED);
    assert!(
        daemon
            .pending_requests()
            .iter()
            .all(|request| request.op != Op::Grow)
    );
    client.end();
}

#[test]
fn nothing_is_denied_while_a_capture_is_open() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(10_000, SeqCst);
    let mut client = start(&daemon);
    let ledger = daemon.ledger(0);
    client.ok("begin 7");
    assert_eq!(ledger.header().captures_open.load(SeqCst), 1);
    client.ok("alloc 50000");
    // On the captured stream it is a node of the graph: no memory yet.
    client.ok("async 3000 7");
    assert_eq!(ledger.gpu(0).used[2].load(SeqCst), 0);
    client.ok("async 3000 8");
    assert_eq!(ledger.gpu(0).used[2].load(SeqCst), 3000);
    client.ok("end 7");
    assert_eq!(ledger.header().captures_open.load(SeqCst), 0);
    assert_eq!(bypassed(&ledger, Bypass::Capture), 3);
    assert_eq!(client.run("alloc 50000"), DENIED);
    client.end();
}

#[test]
fn a_capture_that_failed_is_over_when_the_driver_says_so() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(10_000, SeqCst);
    let mut client = start(&daemon);
    let ledger = daemon.ledger(0);
    client.ok("begin 0x66");
    assert_eq!(client.run("end 0x66").status, 904);
    assert_eq!(ledger.header().captures_open.load(SeqCst), 0);
    assert_eq!(client.run("alloc 50000"), DENIED);
    client.ok("begin 0x67");
    assert_eq!(client.run("end 0x67").status, 908);
    assert_eq!(ledger.header().captures_open.load(SeqCst), 1);
    client.ok("alloc 50000");
    client.end();
}

#[test]
fn impossible_sizes_do_not_wrap_the_account() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(10_000, SeqCst);
    let mut client = start(&daemon);
    client.ok("alloc 1000");
    for size in ["0x7fffffffffffffff", "-1", "-4096"] {
        assert_eq!(client.run(&format!("alloc {size}")), DENIED, "{size}");
    }
    assert_eq!(client.run("alloc 0").status, 1, "the driver's own answer");
    let ledger = daemon.ledger(0);
    assert_eq!(ledger.gpu(0).inflight.load(SeqCst), 0);
    client.ok("alloc 9000");
    client.end();
}

#[test]
fn two_threads_racing_for_the_last_chunk_never_overshoot() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(6000, SeqCst);
    let mut client = start(&daemon);
    client.tell("threads 2 busy 200 4096");
    let statuses = [client.outcome().status, client.outcome().status];
    client.line();
    assert!(
        statuses.iter().all(|status| [0, 2].contains(status)),
        "{statuses:?}"
    );
    let ledger = daemon.ledger(0);
    assert!(ledger.gpu(0).peak.load(SeqCst) <= 6000);
    assert_eq!(ledger.gpu(0).inflight.load(SeqCst), 0);
    client.end();
}

#[test]
fn only_a_declared_total_changes_what_is_shown() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(1 << 20, SeqCst);
    daemon.line(1).virtual_total.store(1 << 30, SeqCst);
    let mut client = start(&daemon);
    client.ok("alloc 4096");
    let real = client.run("info");
    assert_eq!((real.out, real.out2), ((8 << 30) - 4096, 8 << 30));
    client.ok("context 1");
    client.ok("alloc 1000");
    let shown = client.run("info");
    assert_eq!((shown.out, shown.out2), ((1 << 30) - 1000, 1 << 30));
    assert_eq!(client.run("info_null"), shown);
    assert_eq!(client.ok("total 1"), 1 << 30);
    assert_eq!(client.run("nvml 1"), shown, "NVML tells the same");
    assert_eq!(client.run("nvml_v2 1"), shown);
    let undeclared = client.run("nvml 0");
    assert_eq!((undeclared.out, undeclared.out2), (7 << 30, 8 << 30));
    assert_eq!(client.ok("total 0"), 8 << 30);
    daemon.line(1).virtual_total.store(1 << 31, SeqCst);
    assert_eq!(client.ok("total 1"), 1 << 30, "fixed at the first look");
    client.end();
}
