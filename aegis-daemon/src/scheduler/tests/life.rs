//! From submission to the end, restarts included.

use aegis_common::action::{Action, StopHow};
use aegis_common::event::Event;
use aegis_common::id::JobId;
use aegis_common::job::{Exit, JobState, Outcome, Phase, Resources};
use aegis_common::learned::Learned;
use aegis_common::reason::StopReason;

use super::world::{GIB, World, declared, gpu, resources};
use crate::scheduler::Infeasible;

#[test]
fn a_job_starts_at_once_on_an_idle_gpu_and_ends() {
    let mut world = World::new(1);
    let job = world.submit(declared(4));
    let start = Action::Start {
        job,
        attempt: 1,
        gpus: vec![gpu(0)],
        virtual_total: Some(4 * GIB),
    };
    assert!(world.journal.last().unwrap().1.contains(&start));
    world.started(job);
    let phase = Phase::WarmUp;
    assert_eq!(world.job(job).state, JobState::Running { phase });
    let outcome = Outcome::Ok;
    let finish = Action::Finish { job, outcome };
    assert!(world.end(job, Exit::Code(0)).contains(&finish));
    assert_eq!(world.core.live().count(), 0);
    world.core.forget(job);
    assert_eq!(world.core.job(job), None);
}

#[test]
fn outcomes_follow_the_exit() {
    for (exit, outcome) in [
        (Exit::Code(0), Outcome::Ok),
        (
            Exit::Code(3),
            Outcome::Failed {
                exit: Exit::Code(3),
            },
        ),
        (
            Exit::Signal(9),
            Outcome::Failed {
                exit: Exit::Signal(9),
            },
        ),
        (Exit::Unknown, Outcome::Lost),
    ] {
        let mut world = World::new(1);
        let job = world.run(resources());
        world.end(job, exit);
        assert_eq!(world.job(job).state, JobState::Done { outcome });
    }
}

#[test]
fn cancel_ends_a_pending_job_at_once_and_a_running_one_through_its_keeper() {
    let mut world = World::new(1);
    let running = world.run(resources());
    let pending = world.submit(resources());
    let by = 5;
    let outcome = Outcome::Cancelled { by };
    let actions = world.feed(Event::CancelRequested { job: pending, by });
    let finish = Action::Finish {
        job: pending,
        outcome: outcome.clone(),
    };
    assert!(actions.contains(&finish));
    let stop = Action::Stop {
        job: running,
        attempt: 1,
        why: StopReason::Cancelled { by },
        how: StopHow::Terminate,
    };
    let cancel = Event::CancelRequested { job: running, by };
    assert!(world.feed(cancel.clone()).contains(&stop));
    assert!(!world.feed(cancel).contains(&stop));
    world.end(running, Exit::Signal(15));
    assert_eq!(world.job(running).state, JobState::Done { outcome });
}

#[test]
fn a_time_limit_stops_the_attempt_when_it_passes() {
    let mut world = World::new(1);
    let job = world.run(Resources {
        time_limit_s: Some(60),
        ..resources()
    });
    let is_stop = |action: &Action| matches!(action, Action::Stop { .. });
    assert!(!world.pass(59_999).iter().any(is_stop));
    assert!(world.pass(1).iter().any(is_stop));
    assert!(!world.pass(600_000).iter().any(is_stop));
    world.end(job, Exit::Signal(15));
    let outcome = Outcome::Timeout;
    assert_eq!(world.job(job).state, JobState::Done { outcome });
}

#[test]
fn a_command_that_cannot_start_is_over() {
    let mut world = World::new(1);
    let job = world.submit(resources());
    let error = "no such file".to_owned();
    world.feed(Event::StartFailed {
        job,
        attempt: 1,
        error: error.clone(),
    });
    let outcome = Outcome::StartFailed { error };
    assert_eq!(world.job(job).state, JobState::Done { outcome });
    let next = world.submit(resources());
    assert!(world.is_starting(next));
}

#[test]
fn a_start_record_the_core_does_not_know_is_believed() {
    let mut world = World::new(2);
    world.feed(Event::JournalState {
        error: Some("full".to_owned()),
    });
    let job = world.submit(resources());
    assert!(world.is_pending(job));
    world.feed(Event::Started {
        job,
        attempt: 3,
        gpus: vec![gpu(1)],
    });
    assert!(matches!(world.job(job).state, JobState::Running { .. }));
    assert_eq!(world.core.gpus(world.core.now)[1].residents, [job]);
    // An older attempt's record changes nothing.
    world.feed(Event::Started {
        job,
        attempt: 2,
        gpus: vec![gpu(0)],
    });
    assert_eq!(world.core.gpus(world.core.now)[1].residents, [job]);
    // A record that contradicts the placement moves the job.
    world.feed(Event::JournalState { error: None });
    let moved = world.submit(resources());
    assert!(world.is_starting(moved));
    world.feed(Event::Started {
        job: moved,
        attempt: 1,
        gpus: vec![gpu(1)],
    });
    assert_eq!(world.job(moved).attempts.len(), 1);
    assert_eq!(world.core.gpus(world.core.now)[0].residents, []);
    assert_eq!(world.core.gpus(world.core.now)[1].residents, [job, moved]);
}

#[test]
fn duplicates_and_strangers_change_nothing() {
    let mut world = World::new(1);
    let job = world.run(resources());
    let before = world.core.clone();
    for event in [
        Event::Submitted {
            job,
            uid: 1,
            resources: declared(1),
            learned: Learned::default(),
        },
        Event::Started {
            job,
            attempt: 1,
            gpus: vec![gpu(0)],
        },
        Event::Started {
            job: JobId(99),
            attempt: 1,
            gpus: vec![gpu(0)],
        },
        Event::Ended {
            job,
            attempt: 2,
            exit: Exit::Code(0),
        },
        Event::Ended {
            job: JobId(99),
            attempt: 1,
            exit: Exit::Code(0),
        },
    ] {
        assert_eq!(world.feed(event), []);
    }
    assert_eq!(world.core, before);
}

#[test]
fn a_restart_repeats_what_may_not_have_happened() {
    let mut world = World::new(3);
    let starting = world.submit(declared(3));
    let running = world.run(resources());
    let stopping = world.run(resources());
    let by = 1;
    world.feed(Event::CancelRequested { job: stopping, by });
    let again = world.core.resume();
    assert!(again.contains(&Action::Start {
        job: starting,
        attempt: 1,
        gpus: world.job(starting).attempts[0].gpus.clone(),
        virtual_total: Some(3 * GIB),
    }));
    let why = StopReason::Cancelled { by };
    assert!(again.contains(&Action::Stop {
        job: stopping,
        attempt: 1,
        why,
        how: StopHow::Terminate,
    }));
    let concerns = |action: &Action| matches!(action, Action::Start { job, .. } | Action::Stop { job, .. } if *job == running);
    assert!(!again.iter().any(concerns));
    // Nobody knows any more that a GPU is idle.
    world.end_unsampled(running, Exit::Code(0));
    let next = world.submit(resources());
    assert!(world.is_pending(next));
    world.sample_all();
    assert!(world.is_starting(next));
}

#[test]
fn what_no_gpu_can_serve_is_refused_with_the_numbers() {
    let world = World::new(2);
    let check = |resources: Resources| world.core.check_feasible(&resources);
    assert_eq!(check(declared(38)), Ok(()));
    assert_eq!(
        check(Resources {
            gpus: 3,
            ..resources()
        }),
        Err(Infeasible::TooManyGpus { need: 3, have: 2 })
    );
    let error = check(declared(40)).unwrap_err();
    assert!(error.to_string().contains("39.00 GiB"), "{error}");
    assert_eq!(
        check(Resources {
            gpus: 0,
            ..resources()
        }),
        Err(Infeasible::NoGpus)
    );
}

#[test]
fn a_process_that_executes_another_program_comes_again() {
    let mut world = World::new(1);
    let job = world.run(resources());
    let process = world.train(job, GIB);
    world.gone(job, process);
    // A late report does not bring it back, a new introduction does.
    let leases = |actions: &[Action]| {
        let is_lease = |action: &&Action| matches!(action, Action::SetLease { .. });
        actions.iter().filter(is_lease).count()
    };
    assert_eq!(leases(&world.report(job, process)), 0);
    let again = world.feed(Event::ProcessAttached { job, process });
    assert_eq!(leases(&again), 2);
    world.sample_all();
    world.allocate(job, process, gpu(0), GIB);
}

#[test]
fn the_record_of_an_attempt_that_is_over_changes_nothing() {
    let mut world = World::new(1);
    let (older, process) = world.steady(resources(), 10 * GIB);
    let job = world.run(declared(25));
    world.grow(older, process, gpu(0), 15 * GIB);
    world.end(job, Exit::Signal(15));
    assert_eq!(world.job(job).evictions, 1);
    assert!(world.is_pending(job));
    let before = world.core.clone();
    world.feed(Event::Started {
        job,
        attempt: 1,
        gpus: vec![gpu(0)],
    });
    world.feed(Event::Ended {
        job,
        attempt: 1,
        exit: Exit::Signal(15),
    });
    assert_eq!(world.core, before);
}
