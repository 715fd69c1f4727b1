//! Out of memory: the ladder and its end (contract C5).

use aegis_common::action::Action;
use aegis_common::id::{JobId, ProcessKey};
use aegis_common::job::{Exit, JobState, OomFinal, Outcome, Resources};
use aegis_common::reason::RetryReason;

use super::world::{GIB, MIB, World, declared, gpu, resources};

/// The process reports a refusal it does not recover from, and the attempt fails.
fn run_out(world: &mut World, job: JobId, process: ProcessKey, request: u64) -> Vec<Action> {
    let index = world.job(job).attempts.last().unwrap().gpus[0];
    let holdings = world.processes.get_mut(&(job, process)).unwrap();
    holdings.used.entry(index).or_default();
    holdings.refusal.insert(index, request);
    world.report(job, process);
    world.end(job, Exit::Code(1))
}

#[test]
fn a_refusal_and_a_failed_exit_retry_with_peak_request_and_margin() {
    let mut world = World::new(1);
    let (job, process) = world.steady(resources(), 6 * GIB);
    let actions = run_out(&mut world, job, process, 2 * GIB);
    let floor = 8 * GIB + 8 * GIB / 20;
    let why = RetryReason::Oom {
        gpu: gpu(0),
        request: 2 * GIB,
        peak: 6 * GIB,
        floor,
        exclusive: false,
    };
    let attempt = 2;
    assert!(actions.contains(&Action::Retry { job, attempt, why }));
    assert!(world.is_starting(job));
    assert_eq!(world.job(job).holdings[0].lease, floor);
}

#[test]
fn a_recovered_refusal_or_a_good_exit_is_no_oom() {
    for (refusal, exit, ok) in [
        (None, Exit::Code(1), false),
        (Some(GIB), Exit::Code(0), true),
    ] {
        let mut world = World::new(1);
        let (job, process) = world.steady(resources(), GIB);
        let holdings = world.processes.get_mut(&(job, process)).unwrap();
        if let Some(bytes) = refusal {
            holdings.refusal.insert(gpu(0), bytes);
        }
        world.report(job, process);
        world.end(job, exit);
        let outcome = if ok {
            Outcome::Ok
        } else {
            Outcome::Failed { exit }
        };
        assert_eq!(world.job(job).state, JobState::Done { outcome });
    }
}

#[test]
fn the_ladder_ends_alone_and_then_for_good() {
    let mut world = World::new(1);
    let job = world.submit(Resources {
        retries: 9,
        ..resources()
    });
    let mut floors = Vec::new();
    while !matches!(world.job(job).state, JobState::Done { .. }) {
        assert!(world.is_starting(job), "{:?}", world.blockers(job));
        world.started(job);
        let process = world.train(job, GIB);
        run_out(&mut world, job, process, GIB);
        let summary = world.job(job);
        floors.push((summary.floor.unwrap() / GIB, summary.next_exclusive));
    }
    let expected = [
        (10, false),
        (20, false),
        (30, false),
        (30, true),
        (30, true),
    ];
    assert_eq!(floors, expected);
    let outcome = Outcome::Oom {
        exit: Exit::Code(1),
        why: OomFinal::WasExclusive,
    };
    assert_eq!(world.job(job).state, JobState::Done { outcome });
}

#[test]
fn retries_are_used_up_by_oom_alone() {
    let mut world = World::new(1);
    let (job, process) = world.steady(
        Resources {
            retries: 0,
            ..resources()
        },
        GIB,
    );
    run_out(&mut world, job, process, GIB);
    let outcome = Outcome::Oom {
        exit: Exit::Code(1),
        why: OomFinal::NoRetriesLeft,
    };
    assert_eq!(world.job(job).state, JobState::Done { outcome });
}

#[test]
fn a_request_above_capacity_is_final() {
    let mut world = World::new(1);
    let (job, process) = world.steady(resources(), GIB);
    run_out(&mut world, job, process, 50 * GIB);
    let outcome = Outcome::Oom {
        exit: Exit::Code(1),
        why: OomFinal::ExceedsCapacity,
    };
    assert_eq!(world.job(job).state, JobState::Done { outcome });
}

#[test]
fn recovery_raises_a_declared_peak() {
    let mut world = World::new(1);
    let (job, process) = world.steady(declared(4), 4 * GIB);
    run_out(&mut world, job, process, GIB);
    let start = world.journal.iter().rev().find_map(|(_, actions)| {
        actions.iter().find_map(|action| match action {
            Action::Start {
                attempt: 2,
                virtual_total,
                ..
            } => Some(*virtual_total),
            _ => None,
        })
    });
    assert_eq!(start, Some(Some(5 * GIB + 256 * MIB)));
}

#[test]
fn a_refusal_of_a_process_that_ended_before_counts() {
    let mut world = World::new(1);
    let (job, process) = world.steady(resources(), GIB);
    let index = gpu(0);
    let holdings = world.processes.get_mut(&(job, process)).unwrap();
    holdings.refusal.insert(index, GIB);
    world.report(job, process);
    world.gone(job, process);
    let actions = world.end(job, Exit::Code(1));
    assert!(
        actions
            .iter()
            .any(|action| matches!(action, Action::Retry { .. }))
    );
}

#[test]
fn a_recovering_job_keeps_its_place_and_stalls_nobody() {
    let mut world = World::new(2);
    let (job, process) = world.steady(resources(), 6 * GIB);
    let (blocking, _) = world.steady(declared(36), GIB);
    let waiting = world.submit(declared(37));
    let small = world.submit(declared(2));
    world.watch(15);
    assert!(world.is_starting(small));
    world.started(small);
    world.train(small, GIB);
    run_out(&mut world, job, process, 30 * GIB);
    assert!(world.is_pending(job));
    assert_eq!(world.job(job).position, Some(1));
    assert_eq!(world.job(waiting).position, Some(2));
    // 36.25 GiB do not fit beside the small job: others go on meanwhile.
    world.watch(15);
    let another = world.submit(declared(2));
    assert!(world.is_starting(another), "{:?}", world.blockers(another));
    world.end(blocking, Exit::Code(0));
    assert!(world.is_starting(job), "{:?}", world.blockers(job));
}
