//! Budgets and sub-leases (contract C1).

use aegis_common::action::{Action, GrowAnswer};
use aegis_common::event::Event;
use aegis_common::id::{Moment, ProcessKey};
use aegis_common::policy::Policy;
use aegis_common::reason::Denial;

use super::world::{GIB, MIB, World, answer, declared, gpu, resources};

#[test]
fn a_sub_lease_starts_at_nothing_and_grows_in_chunks() {
    let mut world = World::new(1);
    let job = world.run(resources());
    let process = world.attach(job);
    let lease = |limit, oldest| Action::SetLease {
        process,
        gpu: gpu(0),
        limit,
        oldest,
    };
    let (_, attached) = world.journal.last().unwrap();
    assert!(attached.starts_with(&[lease(0, false), lease(0, true)]));
    let (request, actions) = world.grow(job, process, gpu(0), 2 * MIB);
    let limit = 256 * MIB;
    let granted = Action::Answer {
        request,
        answer: GrowAnswer::Granted { limit },
    };
    assert!(actions.starts_with(&[lease(limit, true), granted]));
    let (request, actions) = world.grow(job, process, gpu(0), 3 * GIB);
    let limit = 3 * GIB + 256 * MIB;
    assert_eq!(
        answer(&actions, request),
        Some(&GrowAnswer::Granted { limit })
    );
    assert_eq!(world.job(job).holdings[0].lease, 5 * GIB);
}

#[test]
fn a_declared_peak_is_a_hard_cap() {
    let mut world = World::new(1);
    let job = world.run(declared(4));
    let process = world.attach(job);
    world.allocate(job, process, gpu(0), 4 * GIB);
    let (request, actions) = world.grow(job, process, gpu(0), 1);
    let why = Denial::BeyondDeclared {
        held: 4 * GIB + 1,
        declared: 4 * GIB,
    };
    assert_eq!(answer(&actions, request), Some(&GrowAnswer::Denied { why }));
}

#[test]
fn nobody_is_granted_what_was_promised_to_others() {
    let mut world = World::new(1);
    let (older, _) = world.steady(declared(20), GIB);
    let (younger, process) = world.steady(resources(), GIB);
    assert_ne!(older, younger);
    // 40 GiB − 20 promised − 2 contexts − guard: what is left for the younger one.
    let room = 40 * GIB - 20 * GIB - 2 * 512 * MIB - 512 * MIB;
    let (request, actions) = world.grow(younger, process, gpu(0), room);
    assert!(matches!(
        answer(&actions, request),
        Some(GrowAnswer::Denied {
            why: Denial::NoRoom { .. }
        })
    ));
    world.allocate(younger, process, gpu(0), room - GIB);
}

#[test]
fn a_sub_lease_of_an_ended_process_returns_to_the_budget() {
    let mut world = World::new(1);
    let job = world.run(declared(4));
    let first = world.attach(job);
    world.allocate(job, first, gpu(0), 4 * GIB);
    world.sample_all();
    world.gone(job, first);
    let second = world.attach(job);
    // Not before NVML shows it free.
    let (request, actions) = world.grow(job, second, gpu(0), 3 * GIB);
    assert!(matches!(
        answer(&actions, request),
        Some(GrowAnswer::Denied { .. } | GrowAnswer::Wait { .. })
    ));
    world.sample_all();
    world.allocate(job, second, gpu(0), 4 * GIB);
}

#[test]
fn an_observed_peak_frees_the_rest_of_the_budget() {
    let mut world = World::new(1);
    let job = world.run(resources());
    world.train(job, 2 * GIB);
    assert_eq!(world.job(job).holdings[0].lease, 5 * GIB);
    world.watch(15);
    let holding = world.job(job).holdings[0];
    assert_eq!(holding.peak, 2 * GIB);
    assert_eq!(holding.lease, 2 * GIB + 256 * MIB);
    // A declared budget stays: the user may know of a peak to come.
    let (other, _) = world.steady(declared(8), GIB);
    assert_eq!(world.job(other).holdings[0].lease, 8 * GIB);
}

#[test]
fn contexts_count_as_measured() {
    let mut world = World::new(1);
    let job = world.run(resources());
    let process = world.train(job, GIB);
    assert_eq!(world.job(job).holdings[0].overhead, 512 * MIB);
    for _ in 0..4 {
        world.pass(1_000);
        world.feed(Event::Usage {
            job,
            process,
            launches: 1,
            gpus: vec![aegis_common::event::ProcessGpu {
                gpu: gpu(0),
                used: GIB,
                inflight: 0,
                nvml: Some(GIB + 900 * MIB),
                refusal: None,
            }],
        });
    }
    assert_eq!(world.job(job).holdings[0].overhead, 900 * MIB);
    let second = world.attach(job);
    world.allocate(job, second, gpu(0), MIB);
    assert_eq!(world.job(job).holdings[0].overhead, (900 + 512) * MIB);
}

#[test]
fn what_a_process_was_taking_when_its_daemon_died_is_nobody_elses() {
    let mut world = World::new(1);
    let (job, _) = world.steady(declared(4), GIB);
    world.core.resume();
    let process = world.attach(job);
    let line = |inflight| aegis_common::event::ProcessGpu {
        gpu: gpu(0),
        used: GIB,
        inflight,
        nvml: None,
        refusal: None,
    };
    let mut used = |inflight| {
        let gpus = vec![line(inflight)];
        world.feed(Event::Usage {
            job,
            process,
            launches: 1,
            gpus,
        });
        world.job(job).holdings[0].used
    };
    assert_eq!(
        used(2 * GIB),
        3 * GIB,
        "allowed by a lease of the last daemon"
    );
    assert_eq!(used(2 * GIB), GIB, "not granted yet");
}

#[test]
fn a_preallocating_job_without_a_declared_peak_runs_alone() {
    let mut world = World::new(1);
    let job = world.run(resources());
    let process = world.attach(job);
    world.allocate(job, process, gpu(0), 30 * GIB);
    world.launch(job, process);
    world.watch(15);
    assert!(world.job(job).next_exclusive);
    let other = world.submit(resources());
    assert_eq!(world.codes(other), ["held_exclusively"]);
}

#[test]
fn a_preallocating_job_that_shares_is_denied_and_runs_alone_next() {
    let mut world = World::new(1);
    world.steady(resources(), GIB);
    let job = world.run(resources());
    let process = world.attach(job);
    let (request, actions) = world.grow(job, process, gpu(0), 30 * GIB);
    assert!(matches!(
        answer(&actions, request),
        Some(GrowAnswer::Denied {
            why: Denial::NoRoom { .. }
        })
    ));
    assert!(world.job(job).next_exclusive);
}

#[test]
fn requests_of_strangers_are_denied() {
    let mut world = World::new(2);
    let job = world.run(resources());
    let process = ProcessKey {
        pid: 1,
        start_ticks: 1,
    };
    let (request, actions) = world.grow(job, process, gpu(1), MIB);
    let why = Denial::NotHeld;
    assert_eq!(answer(&actions, request), Some(&GrowAnswer::Denied { why }));
}

#[test]
fn growth_nobody_can_deny_stops_grants() {
    let mut world = World::new(1);
    let (job, process) = world.steady(declared(30), GIB);
    world.intrude(gpu(0), 12 * GIB);
    world.allocate(job, process, gpu(0), 20 * GIB);
    let (request, actions) = world.grow(job, process, gpu(0), 8 * GIB);
    assert!(matches!(
        answer(&actions, request),
        Some(GrowAnswer::Denied {
            why: Denial::ExceedsCapacity { .. }
        })
    ));
    let (request, actions) = world.grow(job, process, gpu(0), 5 * GIB);
    assert!(matches!(
        answer(&actions, request),
        Some(GrowAnswer::Granted { .. })
    ));
    let view = &world.core.gpus(Moment(world.now))[0];
    assert_eq!(view.available, 0);
    assert_eq!(view.unmanaged, 12 * GIB);
}

#[test]
fn memory_of_a_departed_job_counts_until_a_sample_shows_it_free() {
    let mut world = World::with(
        1,
        Policy {
            gate_window: 1,
            ..Policy::default()
        },
        aegis_common::policy::Tier::Gpm,
    );
    let (job, _) = world.steady(declared(30), 29 * GIB);
    let next = world.submit(declared(20));
    world.end_unsampled(job, aegis_common::job::Exit::Code(0));
    assert_eq!(world.codes(next), ["gpu_memory"]);
    world.sample(gpu(0));
    assert!(world.is_starting(next));
}

#[test]
fn what_a_process_holds_counts_even_if_nobody_granted_it() {
    let mut world = World::new(1);
    let job = world.run(resources());
    let process = world.attach(job);
    world.hold(job, process, gpu(0), 20 * GIB);
    let view = &world.core.gpus(Moment(world.now))[0];
    assert_eq!(view.promised, 20 * GIB + 512 * MIB);
    // The same after a restart, when sub-leases are not known any more.
    world.core.resume();
    world.feed(Event::ProcessAttached { job, process });
    world.report(job, process);
    let view = &world.core.gpus(Moment(world.now))[0];
    assert_eq!(view.promised, 20 * GIB + 512 * MIB);
}

#[test]
fn a_job_that_needs_the_guard_keeps_others_out() {
    let mut world = World::new(1);
    let (job, process) = world.steady(resources(), 20 * GIB);
    // 512 MiB each are the guard's and the context's.
    let nearly_all = 39 * GIB + 256 * MIB;
    let (request, actions) = world.grow(job, process, gpu(0), nearly_all - 20 * GIB);
    assert!(matches!(
        answer(&actions, request),
        Some(GrowAnswer::Granted { limit }) if *limit >= nearly_all
    ));
    world.hold(job, process, gpu(0), nearly_all - 20 * GIB);
    let other = world.submit(resources());
    assert!(world.codes(other).contains(&"held_exclusively"));
    let (request, actions) = world.grow(job, process, gpu(0), GIB);
    assert!(matches!(
        answer(&actions, request),
        Some(GrowAnswer::Denied {
            why: Denial::ExceedsCapacity { .. }
        })
    ));
}

#[test]
fn a_job_that_shares_does_not_get_the_guard() {
    let mut world = World::new(1);
    let (job, process) = world.steady(resources(), 20 * GIB);
    let (other, _) = world.steady(resources(), GIB);
    let (request, actions) = world.grow(job, process, gpu(0), 19 * GIB + 256 * MIB);
    assert!(matches!(
        answer(&actions, request),
        Some(GrowAnswer::Denied {
            why: Denial::ExceedsCapacity { .. }
        })
    ));
    assert!(!world.job(other).next_exclusive && !world.job(job).next_exclusive);
}
