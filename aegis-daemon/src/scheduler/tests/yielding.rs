//! Who waits and who yields (contracts C3, C4).

use aegis_common::action::{Action, GrowAnswer};
use aegis_common::event::Event;
use aegis_common::id::{JobId, ProcessKey};
use aegis_common::job::{Exit, Resources};
use aegis_common::reason::{Denial, RetryReason, StopReason};

use super::world::{GIB, World, answer, gpu, resources};

/// An older and a younger resident that together leave about 3 GiB.
fn crowded(younger: Resources) -> (World, JobId, ProcessKey, JobId, ProcessKey) {
    let mut world = World::new(1);
    let (old, old_process) = world.steady(resources(), 15 * GIB);
    let (young, young_process) = world.steady(younger, 4 * GIB);
    world.allocate(young, young_process, gpu(0), 15 * GIB);
    (world, old, old_process, young, young_process)
}

fn stops(actions: &[Action]) -> Vec<(JobId, StopReason)> {
    let stop = |action: &Action| match action {
        Action::Stop { job, why, .. } => Some((*job, why.clone())),
        _ => None,
    };
    actions.iter().filter_map(stop).collect()
}

#[test]
fn a_newcomer_is_denied_at_once() {
    let (mut world, _, _, young, process) = crowded(resources());
    let (request, actions) = world.grow(young, process, gpu(0), 8 * GIB);
    assert!(matches!(
        answer(&actions, request),
        Some(GrowAnswer::Denied {
            why: Denial::NoRoom { .. }
        })
    ));
    assert_eq!(stops(&actions), []);
}

#[test]
fn an_older_job_waits_while_a_younger_evictable_one_is_stopped_and_retried() {
    let (mut world, old, process, young, _) = crowded(resources());
    let (request, actions) = world.grow(old, process, gpu(0), 8 * GIB);
    let wait_ms = 20_000;
    assert_eq!(
        answer(&actions, request),
        Some(&GrowAnswer::Wait { wait_ms })
    );
    let why = StopReason::Evicted {
        job: old,
        gpu: gpu(0),
        bytes: 8 * GIB,
    };
    assert_eq!(stops(&actions), [(young, why)]);
    let actions = world.end_unsampled(young, Exit::Signal(15));
    let why = RetryReason::Evicted { job: old };
    assert!(actions.contains(&Action::Retry {
        job: young,
        attempt: 2,
        why,
    }));
    // The room counts once NVML shows it.
    assert_eq!(answer(&actions, request), None);
    let actions = world.sample(gpu(0));
    assert!(matches!(
        answer(&actions, request),
        Some(GrowAnswer::Granted { .. })
    ));
    let summary = world.job(young);
    assert_eq!(summary.evictions, 1);
    assert!(summary.floor.is_some_and(|floor| floor > 19 * GIB));
}

#[test]
fn a_victims_own_wait_is_denied_first() {
    let mut world = World::new(1);
    let (old, old_process) = world.steady(resources(), 8 * GIB);
    let (middle, middle_process) = world.steady(resources(), 8 * GIB);
    let (young, young_process) = world.steady(
        Resources {
            requeue: false,
            ..resources()
        },
        4 * GIB,
    );
    world.allocate(young, young_process, gpu(0), 14 * GIB);
    let (waits, actions) = world.grow(middle, middle_process, gpu(0), 10 * GIB);
    assert!(matches!(
        answer(&actions, waits),
        Some(GrowAnswer::Wait { .. })
    ));
    let (_, actions) = world.grow(old, old_process, gpu(0), 9 * GIB);
    let denied = Action::Answer {
        request: waits,
        answer: GrowAnswer::Denied {
            why: Denial::BeingEvicted { job: old },
        },
    };
    let position = |wanted: &dyn Fn(&Action) -> bool| actions.iter().position(wanted);
    let denied = position(&|action| *action == denied);
    let stopped = position(&|action| matches!(action, Action::Stop { job, .. } if *job == middle));
    assert!(denied.is_some() && denied < stopped, "{actions:?}");
}

#[test]
fn an_older_job_waits_in_vain_for_one_that_may_not_be_stopped() {
    let (mut world, old, process, _, _) = crowded(Resources {
        requeue: false,
        ..resources()
    });
    let (request, actions) = world.grow(old, process, gpu(0), 8 * GIB);
    assert!(matches!(
        answer(&actions, request),
        Some(GrowAnswer::Wait { .. })
    ));
    assert_eq!(stops(&actions), []);
    assert_eq!(answer(&world.pass(19_999), request), None);
    let why = Denial::WaitedInVain {
        request: 8 * GIB,
        waited_ms: 20_000,
    };
    let actions = world.pass(1);
    assert_eq!(answer(&actions, request), Some(&GrowAnswer::Denied { why }));
}

#[test]
fn an_abandoned_wait_is_forgotten() {
    let (mut world, old, process, _, _) = crowded(Resources {
        requeue: false,
        ..resources()
    });
    let (request, _) = world.grow(old, process, gpu(0), 8 * GIB);
    world.feed(Event::GrowAbandoned { request });
    assert_eq!(answer(&world.pass(30_000), request), None);
}

#[test]
fn nobody_waits_for_what_would_not_fit_alone() {
    let (mut world, old, process, _, _) = crowded(resources());
    let (request, actions) = world.grow(old, process, gpu(0), 30 * GIB);
    assert!(matches!(
        answer(&actions, request),
        Some(GrowAnswer::Denied {
            why: Denial::ExceedsCapacity { .. }
        })
    ));
    assert_eq!(stops(&actions), []);
}

#[test]
fn after_two_evictions_a_job_is_left_alone() {
    let (mut world, old, process, young, _) = crowded(resources());
    for round in 1..=2 {
        let (request, actions) = world.grow(old, process, gpu(0), 8 * GIB);
        assert_eq!(stops(&actions).len(), 1, "{actions:?}");
        world.feed(Event::GrowAbandoned { request });
        world.end(young, Exit::Signal(15));
        assert_eq!(world.job(young).evictions, round);
        world.watch(5);
        assert!(world.is_starting(young), "{:?}", world.blockers(young));
        world.started(young);
    }
    let (_, actions) = world.grow(old, process, gpu(0), 8 * GIB);
    assert_eq!(stops(&actions), []);
}

#[test]
fn a_client_known_to_retry_waits_only_on_its_retry() {
    let (mut world, old, process, young, _) = crowded(resources());
    let ask = |request, try_number| Event::Grow {
        request,
        job: old,
        process,
        gpu: gpu(0),
        bytes: 8 * GIB,
        held: 23 * GIB,
        try_number,
    };
    // It is seen to retry once.
    world.feed(ask(900, 2));
    world.feed(Event::GrowAbandoned { request: 900 });
    world.end(young, Exit::Signal(15));
    world.watch(5);
    world.started(young);
    let first = world.feed(ask(901, 1));
    assert!(matches!(
        answer(&first, 901),
        Some(GrowAnswer::Denied { .. })
    ));
    assert_eq!(stops(&first), []);
    let second = world.feed(ask(902, 2));
    assert!(matches!(
        answer(&second, 902),
        Some(GrowAnswer::Wait { .. })
    ));
    assert_eq!(stops(&second).len(), 1);
}

#[test]
fn an_overdraft_stops_the_youngest_evictable_job() {
    let (mut world, old, _, young, _) = crowded(resources());
    world.intrude(gpu(0), 4 * GIB);
    assert!(stops(&world.sample(gpu(0))).is_empty());
    let process = aegis_common::event::ForeignProcess {
        pid: 1,
        uid: None,
        command: None,
        bytes: 5 * GIB + 400 * (1 << 20),
    };
    world.foreign.insert(gpu(0), vec![process]);
    let actions = world.sample(gpu(0));
    let stopped = stops(&actions);
    assert!(
        matches!(stopped[..], [(job, StopReason::Rescue { .. })] if job == young),
        "{actions:?}"
    );
    assert!(world.job(old).attempts[0].stopped.is_none());
    // One at a time.
    assert_eq!(stops(&world.sample(gpu(0))), []);
    let actions = world.end(young, Exit::Signal(15));
    let retry = |action: &Action| {
        let why = RetryReason::Rescue;
        matches!(action, Action::Retry { why: found, .. } if *found == why)
    };
    assert!(actions.iter().any(retry));
}
