//! Nobody waits for ever: adversarial arrivals, bounded ends.

use std::collections::BTreeMap;

use aegis_common::action::Action;
use aegis_common::event::Event;
use aegis_common::id::{JobId, ProcessKey};
use aegis_common::job::{Exit, JobState, Resources};
use aegis_common::policy::Policy;
use proptest::prelude::*;

use super::world::{World, declared};

/// Seconds that each small job runs; its time limit.
const SMALL_S: u64 = 120;

/// A job that never stops arriving: two of them every half minute.
fn small(gib: u64, requeue: bool) -> Resources {
    Resources {
        requeue,
        time_limit_s: Some(SMALL_S),
        ..declared(gib)
    }
}

/// Starts what the core starts, lets it launch, and ends it when its time is over or the core
/// says so.
#[derive(Default)]
struct Keeper {
    ends: BTreeMap<JobId, u64>,
    seen: usize,
}

impl Keeper {
    fn keep(&mut self, world: &mut World) {
        while let Some((_, actions)) = world.journal.get(self.seen).cloned() {
            self.seen += 1;
            for action in actions {
                match action {
                    Action::Start { job, .. } => {
                        world.started(job);
                        let process: ProcessKey = world.attach(job);
                        world.launch(job, process);
                        self.ends.insert(job, world.now + SMALL_S * 1000 - 1);
                    }
                    Action::Stop { job, .. } => {
                        self.ends.insert(job, world.now);
                    }
                    _ => {}
                }
            }
        }
        let over: Vec<JobId> = self
            .ends
            .iter()
            .filter(|&(_, &end)| end <= world.now)
            .map(|(&job, _)| job)
            .collect();
        for job in over {
            self.ends.remove(&job);
            let stopped = matches!(world.job(job).state, JobState::Stopping { .. });
            let exit = if stopped {
                Exit::Signal(15)
            } else {
                Exit::Code(0)
            };
            world.end(job, exit);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_large_gang_starts_in_bounded_time_against_a_stream_of_small_jobs(
        sizes in prop::collection::vec((1..20_u64, any::<bool>()), 80),
        exclusive in any::<bool>(),
    ) {
        let mut world = World::new(2);
        let mut keeper = Keeper::default();
        let mut sizes = sizes.into_iter();
        let mut arrive = |world: &mut World, keeper: &mut Keeper| {
            for uid in [1, 2] {
                if let Some((gib, requeue)) = sizes.next() {
                    world.submit_as(uid, small(gib, requeue));
                }
            }
            keeper.keep(world);
        };
        arrive(&mut world, &mut keeper);
        let gang = world.submit_as(3, Resources {
            gpus: 2,
            exclusive,
            ..declared(30)
        });
        let submitted = world.now;
        // It becomes the head when those ahead have started, is reserved for after
        // reserve_after_ms, and waits for jobs that end within their limits.
        let policy = Policy::default();
        let bound = policy.reserve_after_ms + 4 * SMALL_S * 1000;
        while world.is_pending(gang) {
            prop_assert!(
                world.now <= submitted + bound,
                "{:?}",
                world.blockers(gang)
            );
            for _ in 0..30 {
                world.watch(1);
                keeper.keep(&mut world);
            }
            arrive(&mut world, &mut keeper);
        }
    }

    #[test]
    fn every_job_of_an_adversarial_crowd_ends(
        crowd in prop::collection::vec((0..4_u32, 1..3_u32, 1..39_u64, any::<bool>(), any::<bool>()), 1..40),
    ) {
        let mut world = World::new(2);
        let mut keeper = Keeper::default();
        let jobs = u64::try_from(crowd.len()).unwrap();
        for (uid, gpus, gib, requeue, exclusive) in crowd {
            world.submit_as(uid, Resources {
                gpus,
                exclusive,
                ..small(gib, requeue)
            });
        }
        // At worst one after the other; an evicted filler runs three times.
        let bound = world.now + jobs * 3 * (SMALL_S + 10) * 1000;
        while world.core.live().next().is_some() {
            prop_assert!(world.now < bound);
            keeper.keep(&mut world);
            world.watch(5);
        }
        world.feed(Event::Woken);
        prop_assert_eq!(world.core.jobs.values().filter(|job| job.ended.is_none()).count(), 0);
    }
}

/// What one of a thousand asks for, and how long after the one before it comes.
fn arrival() -> impl Strategy<Value = (u32, Resources, u64)> {
    let figures = (1..5_u32, 1..39_u64, -2..2_i32, any::<bool>(), 0..10_u32);
    (0..6_u32, figures, 0..40_u64).prop_map(|(uid, figures, gap_s)| {
        let (gpus, gib, priority, requeue, exclusive) = figures;
        let resources = Resources {
            // Most want one GPU; a gang of the whole machine comes now and then.
            gpus: if gib % 4 == 0 { gpus } else { 1 },
            priority,
            exclusive: exclusive == 0,
            ..small(gib, requeue)
        };
        (uid, resources, gap_s)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn a_thousand_adversarial_arrivals_all_end_within_the_bound(
        arrivals in prop::collection::vec(arrival(), 1_000),
    ) {
        let mut world = World::new(4);
        let mut keeper = Keeper::default();
        for (uid, resources, gap_s) in arrivals {
            world.submit_as(uid, resources);
            keeper.keep(&mut world);
            for _ in 0..gap_s / 5 {
                world.watch(5);
                keeper.keep(&mut world);
            }
        }
        // No job comes any more: at worst those left run one after the other, each as often as it
        // may be evicted and once more, for its time limit and the seconds in which it is started,
        // stopped and seen gone. The scheduler owes nothing better to the last of them, and any
        // job that waits for ever breaks it.
        let left = u64::try_from(world.core.live().count()).unwrap();
        let runs = u64::from(Policy::default().max_evictions) + 1;
        let bound = world.now + left * runs * (SMALL_S + 10) * 1000;
        let next = |world: &World| world.core.live().next();
        while let Some(job) = next(&world) {
            prop_assert!(world.now < bound, "{job}: {:?}", world.blockers(job));
            world.watch(5);
            keeper.keep(&mut world);
        }
        let ended = world.journal.iter().flat_map(|(_, actions)| actions);
        let ended = ended.filter(|action| matches!(action, Action::Finish { .. })).count();
        prop_assert_eq!(ended, 1_000);
    }
}
