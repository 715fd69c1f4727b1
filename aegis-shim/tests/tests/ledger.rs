//! What the ledger says is what the driver did.

use std::sync::atomic::Ordering::SeqCst;

use aegis_common::abi::ledger::{Kind, LaunchLine};
use aegis_shim_tests::client::{Setup, WAYS, Way};
use aegis_shim_tests::daemon::FakeDaemon;
use aegis_shim_tests::sys::Ledger;

fn used(ledger: &Ledger, gpu: usize, kind: Kind) -> u64 {
    ledger.gpu(gpu).used[kind as usize].load(SeqCst)
}

fn sum(ledger: &Ledger, field: impl Fn(&LaunchLine) -> u64) -> u64 {
    ledger.launch_lines().map(field).sum()
}

#[test]
fn every_kind_by_every_way() {
    for way in WAYS {
        let daemon = FakeDaemon::start();
        let mut client = Setup::with_shim(way, &daemon.path()).start();
        client.begin();
        let ledger = daemon.ledger(0);
        let linear = client.ok("alloc 1000");
        let managed = client.ok("managed 2000");
        let pooled = client.ok("async 3000 7");
        let other = client.ok("pool 500 7");
        let physical = client.ok("create 4096 1 1");
        client.ok("create 4096 2 0");
        let pitch = client.run("pitch 300 10");
        assert_eq!(
            used(&ledger, 0, Kind::Linear),
            1000 + pitch.out2 * 10,
            "{way:?}"
        );
        assert_eq!(used(&ledger, 0, Kind::Managed), 2000, "{way:?}");
        assert_eq!(used(&ledger, 0, Kind::Pool), 3500, "{way:?}");
        assert_eq!(
            used(&ledger, 1, Kind::Vmm),
            4096,
            "the other GPU, by {way:?}"
        );
        assert_eq!(used(&ledger, 0, Kind::Vmm), 0, "host memory, by {way:?}");
        let array = client.ok("array 16 16");
        assert_eq!(used(&ledger, 0, Kind::Array), 16 * 16 * 16, "{way:?}");
        let peak = ledger.gpu(0).peak.load(SeqCst);
        for command in [
            format!("free {linear}"),
            format!("free {managed}"),
            // Legal on stream-ordered memory too.
            format!("free {pooled}"),
            format!("free_async {other} 7"),
            format!("release {physical}"),
            format!("free {}", pitch.out),
            format!("destroy_array {array}"),
        ] {
            client.ok(&command);
        }
        for gpu in 0..2 {
            let line = ledger.gpu(gpu);
            assert!(
                line.used.iter().all(|used| used.load(SeqCst) == 0),
                "{way:?}"
            );
            assert_eq!(line.inflight.load(SeqCst), 0);
            assert_eq!(line.allocs.load(SeqCst), line.frees.load(SeqCst));
        }
        assert_eq!(
            ledger.gpu(0).allocs.load(SeqCst),
            6,
            "{way:?}: nested calls count once"
        );
        assert_eq!(ledger.gpu(0).peak.load(SeqCst), peak);
        assert_eq!(peak, 1000 + 2000 + 3500 + pitch.out2 * 10 + 16 * 16 * 16);
        client.end();
    }
}

#[test]
fn launches_copies_and_memsets_are_counted_apart() {
    for way in WAYS {
        let daemon = FakeDaemon::start();
        let mut client = Setup::with_shim(way, &daemon.path()).start();
        client.begin();
        let ledger = daemon.ledger(0);
        client.ok("copy 3");
        assert_eq!(
            ledger.header().first_launch_ns.load(SeqCst),
            0,
            "a copy is no launch"
        );
        client.ok("launch 10");
        let first = ledger.header().first_launch_ns.load(SeqCst);
        assert!(first > 0, "{way:?}");
        client.ok("launch_ptsz 5");
        client.ok("graph 2");
        client.ok("host 4");
        client.ok("copy 7");
        client.ok("memset 6");
        client.tell("threads 3 launch 100");
        for _ in 0..3 {
            assert_eq!(client.outcome().status, 0);
        }
        assert_eq!(client.line(), "joined");
        assert_eq!(
            sum(&ledger, |line| line.kernels.load(SeqCst)),
            315,
            "{way:?}"
        );
        assert_eq!(sum(&ledger, |line| line.graphs.load(SeqCst)), 2);
        assert_eq!(sum(&ledger, |line| line.host_functions.load(SeqCst)), 4);
        assert_eq!(sum(&ledger, |line| line.copies.load(SeqCst)), 10);
        assert_eq!(sum(&ledger, |line| line.memsets.load(SeqCst)), 6);
        assert_eq!(ledger.header().first_launch_ns.load(SeqCst), first);
        let lines: Vec<_> = ledger
            .launch_lines()
            .filter(|line| line.tid.load(SeqCst) != 0)
            .collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0].tid.load(SeqCst), u64::from(client.pid()));
        assert_eq!(lines[0].gpu.load(SeqCst), 0);
        client.end();
    }
}

#[test]
fn more_threads_than_lines() {
    let daemon = FakeDaemon::start();
    let mut client = Setup::with_shim(Way::Dlsym, &daemon.path()).start();
    client.begin();
    let ledger = daemon.ledger(0);
    // Twice 100 threads: more than lines at once, and lines of ended threads are used again.
    for round in 1..=2 {
        client.tell("threads 100 launch 50");
        for _ in 0..100 {
            assert_eq!(client.outcome().status, 0);
        }
        assert_eq!(client.line(), "joined");
        assert_eq!(sum(&ledger, |line| line.kernels.load(SeqCst)), round * 5000);
    }
    client.end();
}

#[test]
fn physical_memory_lives_until_released_and_unmapped() {
    let daemon = FakeDaemon::start();
    let mut client = Setup::with_shim(Way::Dlsym, &daemon.path()).start();
    client.begin();
    let ledger = daemon.ledger(0);
    let handle = client.ok("create 65536 1 0");
    client.ok(&format!("map 4096 65536 {handle}"));
    client.ok(&format!("release {handle}"));
    assert_eq!(used(&ledger, 0, Kind::Vmm), 65536, "still mapped");
    let again = client.ok("retain 4096");
    client.ok("unmap 4096 65536");
    assert_eq!(used(&ledger, 0, Kind::Vmm), 65536, "a handle is left");
    client.ok(&format!("release {again}"));
    assert_eq!(used(&ledger, 0, Kind::Vmm), 0);
    assert_eq!(client.run(&format!("release {again}")).status, 1);
    client.end();
}

#[test]
fn a_pools_blocks_are_charged_to_its_gpu() {
    // The second way came with CUDA 13.
    for way in ["default_pool 1", "location_pool 1"] {
        let daemon = FakeDaemon::start();
        daemon.line(1).limit.store(1000, SeqCst);
        let mut client = Setup::with_shim(Way::Dlsym, &daemon.path()).start();
        client.begin();
        client.ok("alloc 1");
        let pool = client.ok(way);
        let block = client.ok(&format!("pool 600 7 {pool}"));
        assert_eq!(client.run(&format!("pool 600 7 {pool}")).status, 2);
        let ledger = daemon.ledger(0);
        assert_eq!(used(&ledger, 0, Kind::Pool), 0, "{way}");
        assert_eq!(used(&ledger, 1, Kind::Pool), 600, "{way}");
        client.ok(&format!("free_async {block} 7"));
        assert_eq!(used(&ledger, 1, Kind::Pool), 0, "{way}");
        client.end();
    }
}

#[test]
fn the_end_of_a_context_ends_its_blocks() {
    let daemon = FakeDaemon::start();
    let mut client = Setup::with_shim(Way::Gpa12, &daemon.path()).start();
    client.begin();
    let ledger = daemon.ledger(0);
    for _ in 0..300 {
        client.ok("alloc 1000");
    }
    client.ok("context 1");
    client.ok("alloc 77");
    client.ok("reset_primary 0");
    assert_eq!(used(&ledger, 0, Kind::Linear), 0);
    assert_eq!(used(&ledger, 1, Kind::Linear), 77);
    // Retained twice: the first release does not end it.
    client.ok("context 1");
    client.ok("release_primary 1");
    assert_eq!(used(&ledger, 1, Kind::Linear), 77);
    client.ok("release_primary 1");
    assert_eq!(used(&ledger, 1, Kind::Linear), 0);
    client.end();
}

#[test]
fn without_a_context_the_device_is_unknown_and_the_driver_decides() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(0, SeqCst);
    let mut client = Setup::with_shim(Way::Dlsym, &daemon.path()).start();
    client.begin();
    client.ok("no_context");
    assert_eq!(client.run("alloc 4096").status, 201);
    let ledger = daemon.ledger(0);
    assert_eq!(ledger.header().bypass[0].load(SeqCst), 1);
    client.end();
}

#[test]
fn failed_frees_change_nothing() {
    let daemon = FakeDaemon::start();
    let mut client = Setup::with_shim(Way::Dlsym, &daemon.path()).start();
    client.begin();
    let ledger = daemon.ledger(0);
    let block = client.ok("alloc 4096");
    assert_eq!(client.run("free 12345").status, 1);
    client.ok("free 0");
    assert_eq!(used(&ledger, 0, Kind::Linear), 4096);
    client.ok(&format!("free {block}"));
    assert_eq!(client.run(&format!("free {block}")).status, 1);
    assert_eq!(used(&ledger, 0, Kind::Linear), 0);
    assert_eq!(
        ledger.header().bypass[5].load(SeqCst),
        2,
        "frees of unknown blocks"
    );
    client.end();
}

#[test]
fn threads_allocating_at_once_leave_exact_sums() {
    let daemon = FakeDaemon::start();
    let mut client = Setup::with_shim(Way::Dlsym, &daemon.path()).start();
    client.begin();
    let ledger = daemon.ledger(0);
    client.ok("alloc 5");
    client.tell("threads 4 busy 2000 4096");
    for _ in 0..4 {
        assert_eq!(client.outcome().status, 0);
    }
    assert_eq!(client.line(), "joined");
    assert_eq!(used(&ledger, 0, Kind::Linear), 5);
    assert_eq!(ledger.gpu(0).inflight.load(SeqCst), 0);
    assert_eq!(ledger.gpu(0).frees.load(SeqCst), 8000);
    assert_eq!(ledger.gpu(0).allocs.load(SeqCst), 8001);
    client.end();
}
