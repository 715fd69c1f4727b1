//! The head of the queue is never starved (contract C9).

use aegis_common::action::Action;
use aegis_common::id::JobId;
use aegis_common::job::{Exit, OnSuspend, Resources};
use aegis_common::reason::StopReason;

use super::world::{GIB, World, declared};

/// It saves its work when told to leave.
fn suspendable(gib: u64) -> Resources {
    Resources {
        on_suspend: Some(OnSuspend {
            signal: 10,
            grace_s: 30,
        }),
        ..declared(gib)
    }
}

fn limited(gib: u64, seconds: u64, requeue: bool) -> Resources {
    Resources {
        time_limit_s: Some(seconds),
        requeue,
        ..declared(gib)
    }
}

/// One GPU with a resident of 20 GiB that must end 2,000 s after its start, and a head that needs
/// 30 GiB and has waited long enough for a reservation.
fn drained() -> (World, JobId, JobId) {
    let mut world = World::new(1);
    let (resident, _) = world.steady(limited(20, 2_000, false), GIB);
    let head = world.submit(declared(30));
    world.watch(301);
    (world, resident, head)
}

#[test]
fn a_reserved_gpu_takes_what_ends_before_its_residents_or_saves_its_work() {
    let (mut world, _, _) = drained();
    let long = world.submit(limited(2, 2_000, false));
    assert_eq!(world.codes(long), ["reserved"]);
    let unlimited = world.submit(Resources {
        requeue: false,
        ..declared(2)
    });
    assert_eq!(world.codes(unlimited), ["reserved"]);
    let short = world.submit(limited(2, 600, false));
    assert!(world.is_starting(short));
    world.started(short);
    world.train(short, GIB);
    world.watch(15);
    // It could be stopped for the head, but would start over.
    let wasteful = world.submit(declared(2));
    assert_eq!(world.codes(wasteful), ["reserved"]);
    let filler = world.submit(suspendable(2));
    assert!(world.is_starting(filler), "{:?}", world.blockers(filler));
}

#[test]
fn fillers_leave_when_only_they_keep_the_head_waiting() {
    let (mut world, resident, head) = drained();
    let (filler, _) = world.steady(suspendable(15), GIB);
    let ended = world.end(resident, Exit::Code(0));
    let stopped = |action: &Action| {
        matches!(action, Action::Stop { job, why: StopReason::Evicted { job: by, .. }, .. }
            if *job == filler && *by == head)
    };
    // Not before samples show the GPU without the one that left.
    assert!(!ended.iter().any(stopped), "{ended:?}");
    let actions = world.watch(15);
    assert!(actions.iter().any(stopped), "{actions:?}");
    // Nobody slips in meanwhile, not even a job that could be suspended.
    let late = world.submit(suspendable(1));
    assert!(world.codes(late).contains(&"reserved"));
    world.end(filler, Exit::Signal(15));
    assert!(world.is_starting(head));
}

#[test]
fn beside_a_resident_without_a_limit_nothing_surely_ends_in_time() {
    let mut world = World::new(1);
    world.steady(declared(20), GIB);
    world.submit(declared(30));
    world.watch(301);
    let job = world.submit(limited(2, 60, false));
    assert_eq!(world.codes(job), ["reserved"]);
}

#[test]
fn a_job_of_higher_priority_passes_a_reservation() {
    let (mut world, _, _) = drained();
    let urgent = world.submit(Resources {
        priority: 1,
        requeue: false,
        ..declared(2)
    });
    assert!(world.is_starting(urgent), "{:?}", world.blockers(urgent));
}

#[test]
fn what_can_never_run_reserves_nothing() {
    let mut world = World::new(1);
    world.steady(declared(20), GIB);
    world.submit(declared(50));
    world.watch(400);
    let job = world.submit(Resources {
        requeue: false,
        ..declared(2)
    });
    assert!(world.is_starting(job), "{:?}", world.blockers(job));
}

#[test]
fn a_cancelled_holder_frees_its_reservation() {
    let (mut world, _, head) = drained();
    let waiting = world.submit(Resources {
        requeue: false,
        ..declared(2)
    });
    assert_eq!(world.codes(waiting), ["reserved"]);
    world.feed(aegis_common::event::Event::CancelRequested { job: head, by: 0 });
    assert!(world.is_starting(waiting));
}

#[test]
fn a_gang_gets_its_gpus_one_by_one() {
    let mut world = World::new(2);
    let (first, _) = world.steady(limited(30, 5_000, false), GIB);
    let (second, _) = world.steady(limited(30, 5_000, false), GIB);
    let gang = world.submit(Resources {
        gpus: 2,
        ..declared(20)
    });
    world.watch(301);
    world.end(first, Exit::Code(0));
    // The idle one is kept.
    let job = world.submit(Resources {
        requeue: false,
        ..declared(20)
    });
    assert!(world.is_pending(job));
    world.end(second, Exit::Code(0));
    assert!(world.is_starting(gang));
    assert!(world.is_pending(job));
}
