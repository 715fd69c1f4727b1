//! Every blocker code: produced, explained, and cleared by the act it names.

use aegis_common::event::{Event, ForeignProcess};
use aegis_common::id::{JobId, ProcessKey};
use aegis_common::job::{Exit, Resources};
use aegis_common::policy::{Mode, Policy, Tier};
use aegis_common::reason::BLOCKER_CODES;

use super::world::{GIB, World, declared, gpu, resources};

/// A machine, a job that waits, and the act that lets it start.
struct Case {
    world: World,
    job: JobId,
    clear: Box<dyn Fn(&mut World)>,
}

fn case(world: World, job: JobId, clear: impl Fn(&mut World) + 'static) -> Case {
    let clear = Box::new(clear);
    Case { world, job, clear }
}

fn stubborn() -> Resources {
    Resources {
        requeue: false,
        ..resources()
    }
}

fn not_enough_gpus() -> Case {
    let mut world = World::new(2);
    let resident = world.run(resources());
    let job = world.submit(Resources {
        gpus: 2,
        ..resources()
    });
    case(world, job, move |world| {
        world.end(resident, Exit::Code(0));
    })
}

fn gpu_memory() -> Case {
    let mut world = World::new(1);
    let (resident, _) = world.steady(declared(30), GIB);
    let job = world.submit(declared(20));
    case(world, job, move |world| {
        world.end(resident, Exit::Code(0));
    })
}

fn pressure() -> Case {
    let mut world = World::new(1);
    world.busy.insert(gpu(0), Some((900, 900, 900)));
    world.steady(resources(), GIB);
    let job = world.submit(resources());
    case(world, job, |world| {
        world.busy.insert(gpu(0), Some((100, 100, 100)));
        world.watch(20);
    })
}

fn interference() -> Case {
    let policy = Policy {
        mode: Mode::Gentle,
        ..Policy::default()
    };
    let mut world = World::with(1, policy, Tier::Gpm);
    world.busy.insert(gpu(0), Some((950, 300, 500)));
    let (resident, _) = world.steady(declared(25), 20 * GIB);
    let job = world.submit(resources());
    case(world, job, move |world| {
        world.end(resident, Exit::Code(0));
    })
}

fn observing() -> Case {
    let mut world = World::new(1);
    let resident = world.run(resources());
    let job = world.submit(resources());
    case(world, job, move |world| {
        world.train(resident, GIB);
        world.watch(15);
    })
}

fn telemetry_stale() -> Case {
    let mut world = World::new(1);
    world.steady(resources(), GIB);
    world.busy.insert(gpu(0), None);
    world.watch(1);
    let job = world.submit(resources());
    case(world, job, |world| {
        world.busy.insert(gpu(0), Some((100, 100, 100)));
        world.watch(1);
    })
}

fn no_telemetry() -> Case {
    let mut world = World::with(1, Policy::default(), Tier::None);
    let (resident, _) = world.steady(resources(), GIB);
    let job = world.submit(resources());
    case(world, job, move |world| {
        world.end(resident, Exit::Code(0));
    })
}

fn held_exclusively() -> Case {
    let mut world = World::new(1);
    let alone = Resources {
        exclusive: true,
        ..resources()
    };
    let (resident, _) = world.steady(alone, GIB);
    let job = world.submit(resources());
    case(world, job, move |world| {
        let by = 0;
        world.feed(Event::CancelRequested { job: resident, by });
        world.end(resident, Exit::Signal(15));
    })
}

fn needs_idle_gpu() -> Case {
    let mut world = World::new(1);
    let (resident, _) = world.steady(resources(), GIB);
    let job = world.submit(Resources {
        exclusive: true,
        ..resources()
    });
    case(world, job, move |world| {
        world.end(resident, Exit::Code(0));
    })
}

fn uninstrumented() -> Case {
    let mut world = World::new(1);
    let (resident, _) = world.steady(resources(), GIB);
    let process = ProcessKey {
        pid: 1,
        start_ticks: 1,
    };
    world.feed(Event::ProcessUninstrumented {
        job: resident,
        process,
    });
    let job = world.submit(resources());
    case(world, job, move |world| {
        world.feed(Event::ProcessAttached {
            job: resident,
            process,
        });
    })
}

fn unprotected_incumbent() -> Case {
    let mut world = World::new(1);
    let resident = world.run(resources());
    let job = world.submit(stubborn());
    case(world, job, move |world| {
        world.train(resident, GIB);
        world.watch(15);
    })
}

fn max_residents() -> Case {
    let policy = Policy {
        max_residents: 1,
        ..Policy::default()
    };
    let mut world = World::with(1, policy, Tier::Gpm);
    world.steady(resources(), GIB);
    let job = world.submit(resources());
    case(world, job, |world| {
        let policy = Policy::default();
        world.feed(Event::Configured { policy });
    })
}

fn foreign_process() -> Case {
    let policy = Policy {
        share_with_foreign: false,
        ..Policy::default()
    };
    let mut world = World::with(1, policy, Tier::Gpm);
    world.intrude(gpu(0), GIB);
    let job = world.submit(resources());
    case(world, job, |world| world.intrude(gpu(0), 0))
}

fn overdraft() -> Case {
    let mut world = World::new(1);
    world.steady(declared(30), GIB);
    world.intrude(gpu(0), 12 * GIB);
    let job = world.submit(resources());
    case(world, job, |world| {
        world.intrude(gpu(0), 0);
        world.watch(15);
    })
}

fn gpu_lost() -> Case {
    let mut world = World::new(1);
    world.feed(Event::MachineFound { gpus: Vec::new() });
    let job = world.submit(resources());
    case(world, job, |world| {
        let gpus = world.gpus.clone();
        world.feed(Event::MachineFound { gpus });
        world.sample_all();
    })
}

fn reserved() -> Case {
    let mut world = World::new(1);
    world.steady(declared(20), GIB);
    let head = world.submit(declared(30));
    world.watch(301);
    let job = world.submit(stubborn());
    case(world, job, move |world| {
        let by = 0;
        world.feed(Event::CancelRequested { job: head, by });
    })
}

fn behind() -> Case {
    let mut world = World::new(1);
    world.feed(Event::JournalState {
        error: Some("disk full".to_owned()),
    });
    let ahead = world.submit(resources());
    let job = world.submit(resources());
    case(world, job, move |world| {
        world.feed(Event::JournalState { error: None });
        world.started(ahead);
        world.end(ahead, Exit::Code(0));
    })
}

fn journal_unwritable() -> Case {
    let mut world = World::new(1);
    world.feed(Event::JournalState {
        error: Some("disk full".to_owned()),
    });
    let job = world.submit(resources());
    case(world, job, |world| {
        world.feed(Event::JournalState { error: None });
    })
}

fn case_of(code: &str) -> Case {
    match code {
        "not_enough_gpus" => not_enough_gpus(),
        "gpu_memory" => gpu_memory(),
        "pressure" => pressure(),
        "interference" => interference(),
        "observing" => observing(),
        "telemetry_stale" => telemetry_stale(),
        "no_telemetry" => no_telemetry(),
        "held_exclusively" => held_exclusively(),
        "needs_idle_gpu" => needs_idle_gpu(),
        "uninstrumented" => uninstrumented(),
        "unprotected_incumbent" => unprotected_incumbent(),
        "max_residents" => max_residents(),
        "foreign_process" => foreign_process(),
        "overdraft" => overdraft(),
        "gpu_lost" => gpu_lost(),
        "reserved" => reserved(),
        "behind" => behind(),
        "journal_unwritable" => journal_unwritable(),
        _ => panic!("no case for {code}"),
    }
}

#[test]
fn every_code_is_cleared_by_its_act() {
    for code in BLOCKER_CODES {
        let Case {
            mut world,
            job,
            clear,
        } = case_of(code);
        assert!(world.is_pending(job), "{code}");
        let codes = world.codes(job);
        assert!(codes.contains(&code), "{code} not in {codes:?}");
        let sorted = codes.iter().map(|code| {
            let position = BLOCKER_CODES.iter().position(|listed| listed == code);
            position.expect("a listed code")
        });
        assert!(sorted.is_sorted(), "{codes:?}");
        clear(&mut world);
        assert!(
            world.is_starting(job),
            "{code} cleared, yet: {:?}",
            world.blockers(job)
        );
    }
}

#[test]
fn every_obstacle_is_listed_at_once() {
    let policy = Policy {
        share_with_foreign: false,
        max_residents: 1,
        ..Policy::default()
    };
    let mut world = World::with(1, policy, Tier::Gpm);
    world.run(declared(30));
    let process = ForeignProcess {
        pid: 9,
        uid: None,
        command: None,
        bytes: 20 * GIB,
    };
    world.foreign.insert(gpu(0), vec![process]);
    world.busy.insert(gpu(0), None);
    world.sample_all();
    let job = world.submit(Resources {
        exclusive: true,
        ..declared(20)
    });
    assert_eq!(
        world.codes(job),
        [
            "foreign_process",
            "overdraft",
            "needs_idle_gpu",
            "max_residents",
            "telemetry_stale",
            "observing",
            "gpu_memory",
        ]
    );
}

#[test]
fn only_pending_jobs_have_blockers() {
    let mut world = World::new(1);
    let job = world.run(resources());
    assert_eq!(world.blockers(job), []);
    assert_eq!(world.blockers(JobId(77)), []);
}
