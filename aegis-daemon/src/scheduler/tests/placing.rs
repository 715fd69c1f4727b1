//! Which GPU, when: placement policies, observation, the gate.

use aegis_common::action::Action;
use aegis_common::event::{Event, Link, Peer};
use aegis_common::id::GpuIndex;
use aegis_common::job::{Exit, JobState, Phase, Resources};
use aegis_common::policy::{Mode, Placement, Policy, Tier};

use super::world::{GIB, MIB, World, declared, gpu, resources};

fn placed(world: &World, job: aegis_common::id::JobId) -> Vec<GpuIndex> {
    let attempts = world.job(job).attempts;
    attempts
        .last()
        .map(|last| last.gpus.clone())
        .unwrap_or_default()
}

/// Two occupied, observed GPUs: 0 has more memory left and is busier.
fn occupied(placement: Placement) -> World {
    let policy = Policy {
        placement,
        ..Policy::default()
    };
    let mut world = World::with(2, policy, Tier::Gpm);
    world.busy.insert(gpu(0), Some((500, 100, 100)));
    world.busy.insert(gpu(1), Some((100, 100, 100)));
    world.steady(declared(4), GIB);
    world.steady(declared(8), GIB);
    world
}

#[test]
fn idle_gpus_come_first_whatever_the_policy() {
    for placement in [
        Placement::MostAvailableMemory,
        Placement::LeastUtilised,
        Placement::BestFit,
        Placement::RoundRobin,
    ] {
        let policy = Policy {
            placement,
            ..Policy::default()
        };
        let mut world = World::with(2, policy, Tier::Gpm);
        let (first, _) = world.steady(resources(), GIB);
        let second = world.run(resources());
        assert_eq!(placed(&world, first), [gpu(0)]);
        assert_eq!(placed(&world, second), [gpu(1)]);
    }
}

#[test]
fn occupied_gpus_are_taken_in_the_policys_order() {
    for (placement, expected) in [
        (Placement::MostAvailableMemory, 0),
        (Placement::LeastUtilised, 1),
        (Placement::BestFit, 1),
        (Placement::RoundRobin, 0),
    ] {
        let mut world = occupied(placement);
        let job = world.submit(resources());
        assert_eq!(placed(&world, job), [gpu(expected)], "{placement:?}");
    }
    let mut world = occupied(Placement::Exclusive);
    let job = world.submit(resources());
    assert!(world.is_pending(job));
}

#[test]
fn a_gang_takes_distinct_gpus_at_once_or_none() {
    let mut world = World::new(3);
    let (single, _) = world.steady(
        Resources {
            exclusive: true,
            ..resources()
        },
        GIB,
    );
    let gang = |gpus| Resources {
        gpus,
        ..resources()
    };
    let three = world.submit(gang(3));
    assert_eq!(world.codes(three), ["not_enough_gpus", "held_exclusively"]);
    let two = world.submit(gang(2));
    assert_eq!(placed(&world, two), [gpu(1), gpu(2)]);
    world.started(two);
    world.end(two, Exit::Code(0));
    world.end(single, Exit::Code(0));
    assert_eq!(placed(&world, three), [gpu(0), gpu(1), gpu(2)]);
}

#[test]
fn several_jobs_start_in_one_step_but_one_per_gpu() {
    let mut world = World::unsampled(3, Policy::default(), Tier::Gpm);
    for _ in 0..5 {
        world.submit(resources());
    }
    world.feed(Event::JournalState {
        error: Some("full".to_owned()),
    });
    world.sample_all();
    let actions = world.feed(Event::JournalState { error: None });
    let starts = actions
        .iter()
        .filter(|action| matches!(action, Action::Start { .. }));
    assert_eq!(starts.count(), 3);
}

#[test]
fn a_gpu_reopens_when_its_newcomer_is_observed() {
    let mut world = World::new(1);
    let job = world.run(resources());
    let phase = |world: &World| match world.job(job).state {
        JobState::Running { phase } => phase,
        _ => panic!("runs"),
    };
    world.watch(60);
    assert_eq!(phase(&world), Phase::WarmUp);
    let process = world.train(job, GIB);
    world.watch(8);
    world.allocate(job, process, gpu(0), GIB);
    // The peak rose late: the plateau is not reached with the minimum.
    world.watch(4);
    assert_eq!(phase(&world), Phase::Observing);
    let next = world.submit(resources());
    assert_eq!(world.codes(next), ["observing"]);
    world.watch(1);
    assert_eq!(phase(&world), Phase::Steady);
    assert!(world.is_starting(next), "{:?}", world.blockers(next));
    // A new peak is learned with the GPU open.
    world.allocate(job, process, gpu(0), GIB);
    assert_eq!(phase(&world), Phase::Steady);
    world.watch(6);
    assert_eq!(world.job(job).holdings[0].lease, 3 * GIB + 256 * MIB);
}

#[test]
fn memory_that_never_settles_is_observed_for_the_maximum() {
    let mut world = World::new(1);
    let job = world.run(resources());
    let process = world.train(job, GIB);
    for _ in 0..119 {
        world.watch(1);
        world.allocate(job, process, gpu(0), MIB);
    }
    let observing = |phase| JobState::Running { phase };
    assert_eq!(world.job(job).state, observing(Phase::Observing));
    world.watch(1);
    assert_eq!(world.job(job).state, observing(Phase::Steady));
}

#[test]
fn every_process_that_launches_is_observed() {
    let mut world = World::new(1);
    let job = world.run(resources());
    world.train(job, GIB);
    world.watch(9);
    world.train(job, GIB);
    world.watch(9);
    let phase = Phase::Observing;
    assert_eq!(world.job(job).state, JobState::Running { phase });
    world.watch(1);
    let phase = Phase::Steady;
    assert_eq!(world.job(job).state, JobState::Running { phase });
}

#[test]
fn a_dormant_job_lets_one_evictable_job_in_and_its_launch_closes_the_gpu() {
    let mut world = World::new(1);
    let sleeper = world.run(declared(4));
    let process = world.attach(sleeper);
    world.watch(599);
    let guest = world.submit(resources());
    assert_eq!(world.codes(guest), ["observing"]);
    world.watch(1);
    let phase = Phase::Dormant;
    assert_eq!(world.job(sleeper).state, JobState::Running { phase });
    assert!(world.is_starting(guest));
    world.started(guest);
    world.launch(sleeper, process);
    let phase = Phase::Observing;
    assert_eq!(world.job(sleeper).state, JobState::Running { phase });
}

#[test]
fn a_job_that_stops_launching_is_dormant() {
    let mut world = World::new(1);
    let (job, _) = world.steady(resources(), GIB);
    world.watch(600);
    let phase = Phase::Dormant;
    assert_eq!(world.job(job).state, JobState::Running { phase });
}

#[test]
fn the_gate_needs_activity_and_one_more_figure() {
    for (busy, codes) in [
        ((900, 100, 100), vec![]),
        ((549, 900, 900), vec![]),
        ((550, 250, 0), vec!["pressure"]),
        ((550, 0, 400), vec!["pressure"]),
    ] {
        let mut world = World::new(1);
        world.busy.insert(gpu(0), Some(busy));
        world.steady(resources(), GIB);
        let job = world.submit(resources());
        assert_eq!(world.codes(job), codes, "{busy:?}");
    }
}

#[test]
fn the_utilisation_tier_has_its_own_gate() {
    for (activity, codes) in [(699, vec![]), (700, vec!["pressure"])] {
        let mut world = World::with(1, Policy::default(), Tier::Utilisation);
        world.busy.insert(gpu(0), Some((activity, 0, 0)));
        world.steady(resources(), GIB);
        let job = world.submit(resources());
        assert_eq!(world.codes(job), codes);
    }
}

#[test]
fn samples_of_former_residents_do_not_count() {
    let mut world = World::new(1);
    world.steady(resources(), GIB);
    let (leaver, _) = world.steady(resources(), GIB);
    world.busy.insert(gpu(0), Some((900, 900, 900)));
    world.watch(5);
    let job = world.submit(resources());
    assert_eq!(world.codes(job), ["pressure"]);
    world.busy.insert(gpu(0), Some((100, 100, 100)));
    world.end(leaver, Exit::Code(0));
    assert_eq!(world.codes(job), ["observing"]);
    world.watch(2);
    assert!(world.is_starting(job), "{:?}", world.blockers(job));
}

#[test]
fn users_take_turns_and_priority_comes_first() {
    let mut world = World::new(1);
    let alone = Resources {
        exclusive: true,
        ..resources()
    };
    let first = world.submit_as(1, alone.clone());
    let second = world.submit_as(1, alone.clone());
    let third = world.submit_as(1, alone.clone());
    let other = world.submit_as(2, alone.clone());
    let low = world.submit_as(
        3,
        Resources {
            priority: -1,
            ..alone
        },
    );
    let mut order = Vec::new();
    for _ in 0..5 {
        let job = world.core.live().next().unwrap();
        order.push(job);
        world.started(job);
        world.end(job, Exit::Code(0));
    }
    assert_eq!(order, [first, second, other, third, low]);
}

#[test]
fn a_small_job_does_not_slip_in_before_a_sample_shows_room_for_the_large_one() {
    let mut world = World::new(1);
    let (job, _) = world.steady(declared(38), 30 * GIB);
    let large = world.submit(declared(36));
    let small = world.submit(declared(1));
    world.end_unsampled(job, Exit::Code(0));
    assert_eq!(world.codes(small), ["behind"]);
    world.sample(gpu(0));
    assert!(world.is_starting(large));
    assert!(world.is_pending(small));
}

#[test]
fn a_sample_that_knows_nothing_does_not_clear_foreign_processes() {
    let policy = Policy {
        share_with_foreign: false,
        ..Policy::default()
    };
    let mut world = World::with(1, policy, Tier::Gpm);
    world.intrude(gpu(0), GIB);
    world.busy.insert(gpu(0), None);
    world.foreign.clear();
    world.watch(5);
    let job = world.submit(resources());
    assert_eq!(world.codes(job), ["foreign_process", "telemetry_stale"]);
}

/// Links of GPU `index` among eight: NVLink in pairs 0-5, 1-4, a PCIe switch below 0..4 and 4..8.
fn linked(index: u32) -> Vec<Peer> {
    let others = (0..8).filter(|&other| other != index);
    let link = |other: u32| match (index.min(other), index.max(other)) {
        (0, 5) | (1, 4) => Link::NvLink,
        (low, high) if low / 4 == high / 4 => Link::Switch,
        _ => Link::System,
    };
    let peer = |other| Peer {
        gpu: gpu(other),
        link: link(other),
    };
    others.map(peer).collect()
}

fn linked_world() -> World {
    let mut world = World::new(8);
    for gpu in &mut world.gpus {
        gpu.peers = linked(gpu.index.0);
    }
    let gpus = world.gpus.clone();
    world.feed(Event::MachineFound { gpus });
    world
}

fn several(gpus: u32) -> Resources {
    Resources {
        gpus,
        ..resources()
    }
}

#[test]
fn a_job_with_several_gpus_takes_those_closest_to_each_other() {
    let mut world = linked_world();
    let numbers =
        |world: &World, job| -> Vec<u32> { placed(world, job).iter().map(|gpu| gpu.0).collect() };
    // NVLink before a PCIe switch; of equally close sets the one taken first anyway.
    let pair = world.run(several(2));
    assert_eq!(numbers(&world, pair), [0, 5]);
    let pair = world.run(several(2));
    assert_eq!(numbers(&world, pair), [1, 4]);
    // 2, 3, 6 and 7 are left: below one switch before across the machine.
    let pair = world.run(several(2));
    assert_eq!(numbers(&world, pair), [2, 3]);
    let single = world.run(resources());
    assert_eq!(numbers(&world, single), [6]);
}

#[test]
fn four_gpus_stay_below_one_switch_though_a_pair_has_nvlink_across() {
    let mut world = linked_world();
    let four = world.run(several(4));
    let four: Vec<u32> = placed(&world, four).iter().map(|gpu| gpu.0).collect();
    assert_eq!(four, [0, 1, 2, 3]);
}

#[test]
fn idle_gpus_far_apart_come_before_a_close_occupied_one() {
    let mut world = linked_world();
    let (holder, _) = world.steady(resources(), GIB);
    assert_eq!(placed(&world, holder), [gpu(0)]);
    let pair = world.run(several(2));
    assert_eq!(placed(&world, pair), [gpu(1), gpu(4)]);
    let rest = world.run(several(5));
    let rest: Vec<u32> = placed(&world, rest).iter().map(|gpu| gpu.0).collect();
    assert_eq!(rest, [2, 3, 5, 6, 7]);
}

#[test]
fn each_mode_closes_the_gate_elsewhere() {
    let modes = [Mode::Gentle, Mode::Gate, Mode::Balanced, Mode::Throughput];
    for (sm_active, open_from) in [(450, 0), (520, 1), (580, 2), (680, 3), (720, 4)] {
        for (place, mode) in modes.into_iter().enumerate() {
            let policy = Policy {
                mode,
                ..Policy::default()
            };
            let mut world = World::with(1, policy, Tier::Gpm);
            world.busy.insert(gpu(0), Some((sm_active, 400, 200)));
            world.steady(declared(5), GIB);
            let job = world.submit(declared(1));
            let joins = world.is_starting(job);
            assert_eq!(joins, place >= open_from, "{:?}", world.blockers(job));
        }
    }
}
