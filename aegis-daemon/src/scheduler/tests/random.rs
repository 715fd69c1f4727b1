//! Random but consistent lives of jobs on a [`World`].

use std::cell::RefCell;
use std::rc::Rc;

use aegis_common::action::{Action, GrowAnswer};
use aegis_common::event::Event;
use aegis_common::id::{JobId, ProcessKey};
use aegis_common::job::{Exit, Resources};
use aegis_common::policy::{Mode, Placement, Policy, Tier};
use proptest::prelude::*;

use super::checks::Checks;
use super::world::{GIB, MIB, World, gpu};

/// One thing that happens. Numbers pick among what is there.
#[derive(Clone, Debug)]
pub(super) enum Happening {
    Submit {
        uid: u32,
        resources: Resources,
    },
    Start(usize),
    /// Everything it takes until a job is observed.
    Train {
        job: usize,
        gib: u64,
    },
    StartFails(usize),
    Attach(usize),
    Launch(usize),
    Grow {
        process: usize,
        mib: u64,
    },
    Free {
        process: usize,
        share: u64,
    },
    Abandon(usize),
    ProcessEnds(usize),
    End {
        job: usize,
        code: i32,
    },
    Cancel(usize),
    Sample(u32),
    Pass(u64),
    Watch(u64),
    Intrude {
        gpu: u32,
        gib: u64,
    },
    /// Foreign processes take all but 100 MiB of what is free.
    Flood(u32),
    Busy {
        gpu: u32,
        level: Option<u16>,
    },
    Journal(bool),
    Lose(u32),
    Uninstrumented(usize),
    /// The daemon dies and comes back.
    Restart,
}

fn resources() -> impl Strategy<Value = Resources> {
    (
        prop_oneof![4 => Just(1_u32), 1 => Just(2)],
        prop::option::of(1..30_u64),
        -1..2_i32,
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.7),
        0..3_u32,
        prop::option::of(10..400_u64),
    )
        .prop_map(
            |(gpus, gib, priority, exclusive, requeue, retries, time_limit_s)| Resources {
                gpus,
                gpu_mem: gib.map(|gib| gib * GIB),
                priority,
                exclusive,
                requeue,
                retries,
                time_limit_s,
                on_suspend: None,
            },
        )
}

fn happening() -> impl Strategy<Value = Happening> {
    let pick = || 0..64_usize;
    prop_oneof![
        6 => (0..3_u32, resources()).prop_map(|(uid, resources)| Happening::Submit { uid, resources }),
        3 => pick().prop_map(Happening::Start),
        14 => (pick(), 1..6_u64).prop_map(|(job, gib)| Happening::Train { job, gib }),
        1 => pick().prop_map(Happening::StartFails),
        3 => pick().prop_map(Happening::Attach),
        2 => pick().prop_map(Happening::Launch),
        16 => (pick(), 1..12_000_u64).prop_map(|(process, mib)| Happening::Grow { process, mib }),
        3 => (pick(), 0..100_u64).prop_map(|(process, share)| Happening::Free { process, share }),
        1 => pick().prop_map(Happening::Abandon),
        2 => pick().prop_map(Happening::ProcessEnds),
        3 => (pick(), 0..2_i32).prop_map(|(job, code)| Happening::End { job, code }),
        1 => pick().prop_map(Happening::Cancel),
        4 => (0..2_u32).prop_map(Happening::Sample),
        3 => (1..30_000_u64).prop_map(Happening::Pass),
        8 => (1..20_u64).prop_map(Happening::Watch),
        2 => (0..2_u32, prop_oneof![1 => Just(0), 2 => 0..16_u64]).prop_map(|(gpu, gib)| Happening::Intrude { gpu, gib }),
        1 => (0..2_u32, prop::option::weighted(0.8, prop_oneof![2 => 0..300_u16, 1 => 300..1000_u16])).prop_map(|(gpu, level)| Happening::Busy { gpu, level }),
        1 => (0..2_u32).prop_map(Happening::Flood),
        1 => prop::bool::weighted(0.2).prop_map(Happening::Journal),
        1 => (0..8_u32).prop_map(Happening::Lose),
        1 => pick().prop_map(Happening::Uninstrumented),
        1 => Just(Happening::Restart),
    ]
}

/// A policy and what happens.
pub(super) fn lives() -> impl Strategy<Value = (Policy, Vec<Happening>)> {
    let placement = prop_oneof![
        Just(Placement::MostAvailableMemory),
        Just(Placement::LeastUtilised),
        Just(Placement::BestFit),
        Just(Placement::RoundRobin),
    ];
    let mode = prop_oneof![
        2 => Just(Mode::Gate),
        1 => Just(Mode::Gentle),
        1 => Just(Mode::Balanced),
        1 => Just(Mode::Throughput),
    ];
    let policy = (
        placement,
        mode,
        prop::bool::weighted(0.8),
        prop_oneof![4 => Just(0), 1 => 1..3_u32],
    )
        .prop_map(
            |(placement, mode, share_with_foreign, max_residents)| Policy {
                placement,
                mode,
                share_with_foreign,
                max_residents,
                ..Policy::default()
            },
        );
    (policy, prop::collection::vec(happening(), 20..160))
}

/// Plays a life, checking after each step.
pub(super) fn play(policy: Policy, happenings: &[Happening]) -> World {
    let mut world = World::with(2, policy, Tier::Gpm);
    let checks = Rc::new(RefCell::new(Checks::default()));
    let observer = Rc::clone(&checks);
    world.observer = Some(Box::new(move |core, event, actions| {
        observer.borrow_mut().step(core, event, actions);
    }));
    for happening in happenings {
        if matches!(happening, Happening::Restart) {
            checks.borrow_mut().restarted();
            world.restart();
            continue;
        }
        let running = checks.borrow().running();
        let open = checks.borrow().open_requests();
        apply(&mut world, &running, &open, happening);
    }
    // Whoever waits is answered in the end.
    world.pass(40_000);
    world.feed(Event::Woken);
    assert_eq!(checks.borrow().open_requests(), [0_u64; 0]);
    world
}

fn pick<T: Clone>(from: impl Iterator<Item = T>, index: usize) -> Option<T> {
    let all: Vec<T> = from.collect();
    (!all.is_empty()).then(|| all[index % all.len()].clone())
}

fn apply(world: &mut World, running: &[JobId], open: &[u64], happening: &Happening) {
    let processes: Vec<(JobId, ProcessKey)> = world.processes.keys().copied().collect();
    let job_at = |index: usize| pick(running.iter().copied(), index);
    let process_at = |index: usize| pick(processes.iter().copied(), index);
    match *happening {
        Happening::Submit { uid, ref resources } => {
            world.submit_as(uid, resources.clone());
        }
        Happening::Start(index) => {
            if let Some(job) = job_at(index) {
                world.started(job);
            }
        }
        Happening::Train { job, gib } => {
            let Some(job) = job_at(job) else { return };
            world.started(job);
            if !processes.iter().any(|(owner, _)| *owner == job) {
                let process = world.attach(job);
                ask(world, job, process, gib * GIB);
                world.launch(job, process);
            }
            world.watch(12);
        }
        Happening::StartFails(index) => {
            let fresh = running.iter().copied().filter(|&job| {
                let attempts = world.job(job).attempts;
                attempts.last().is_some_and(|last| last.started.is_none())
            });
            if let Some(job) = pick(fresh, index) {
                let attempt = world.job(job).attempts.len();
                let attempt = u32::try_from(attempt).unwrap();
                let error = "gone".to_owned();
                world.feed(Event::StartFailed {
                    job,
                    attempt,
                    error,
                });
            }
        }
        Happening::Attach(index) => {
            if let Some(job) = job_at(index) {
                world.attach(job);
            }
        }
        Happening::Launch(index) => {
            if let Some((job, process)) = process_at(index) {
                world.launch(job, process);
            }
        }
        Happening::Grow { process, mib } => {
            if let Some((job, process)) = process_at(process) {
                ask(world, job, process, mib * MIB);
            }
        }
        Happening::Free { process, share } => {
            if let Some((job, process)) = process_at(process) {
                let holdings = world.processes.get_mut(&(job, process)).unwrap();
                for used in holdings.used.values_mut() {
                    *used = *used / 100 * share;
                }
                world.report(job, process);
            }
        }
        Happening::Abandon(index) => {
            if let Some(request) = pick(open.iter().copied(), index) {
                world.feed(Event::GrowAbandoned { request });
            }
        }
        Happening::ProcessEnds(index) => {
            if let Some((job, process)) = process_at(index) {
                world.gone(job, process);
            }
        }
        Happening::End { job, code } => {
            if let Some(job) = job_at(job) {
                for process in processes.iter().filter(|(owner, _)| *owner == job) {
                    let holdings = world.processes.get_mut(process).unwrap();
                    holdings.refusal = holdings.used.keys().map(|&gpu| (gpu, GIB)).collect();
                    world.report(process.0, process.1);
                }
                world.end_unsampled(job, Exit::Code(code));
            }
        }
        Happening::Cancel(index) => {
            let live: Vec<JobId> = world.core.live().collect();
            if let Some(job) = pick(live.into_iter(), index) {
                world.feed(Event::CancelRequested { job, by: 0 });
            }
        }
        Happening::Sample(index) => {
            world.sample(gpu(index));
        }
        Happening::Pass(millis) => {
            world.pass(millis);
        }
        Happening::Watch(seconds) => {
            world.watch(seconds);
        }
        Happening::Intrude { gpu: index, gib } => world.intrude(gpu(index), gib * GIB),
        Happening::Flood(index) => {
            world.foreign.remove(&gpu(index));
            let held = world.reading(gpu(index)).used.unwrap_or(0);
            world.intrude(gpu(index), (40 * GIB - 100 * MIB).saturating_sub(held));
            world.sample(gpu(index));
        }
        Happening::Busy { gpu: index, level } => {
            let level = level.map(|level| (level, level, level));
            world.busy.insert(gpu(index), level);
        }
        Happening::Journal(broken) => {
            let error = broken.then(|| "disk full".to_owned());
            world.feed(Event::JournalState { error });
        }
        Happening::Lose(index) => {
            let all = world.gpus.iter().filter(|gpu| gpu.index.0 != index);
            let gpus = all.cloned().collect();
            world.feed(Event::MachineFound { gpus });
        }
        Happening::Restart => {}
        Happening::Uninstrumented(index) => {
            if let Some(job) = job_at(index) {
                let process = ProcessKey {
                    pid: 1,
                    start_ticks: job.0,
                };
                world.feed(Event::ProcessUninstrumented { job, process });
            }
        }
    }
}

/// A process asks for memory on its job's first GPU, and holds it if granted at once.
fn ask(world: &mut World, job: JobId, process: ProcessKey, bytes: u64) {
    let Some(attempt) = world.job(job).attempts.last().cloned() else {
        return;
    };
    let index = attempt.gpus[0];
    let (request, actions) = world.grow(job, process, index, bytes);
    let granted = actions.iter().any(|action| {
        matches!(action, Action::Answer { request: answered, answer: GrowAnswer::Granted { .. } }
            if *answered == request)
    });
    if granted {
        world.hold(job, process, index, bytes);
    }
}
