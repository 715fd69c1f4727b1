//! The published rules in hand-made situations.

mod world;

use aegis_common::event::Event;
use aegis_common::id::{JobId, Moment};

use self::world::{Figures, World, submitted};
use super::{NAMES, Profiles, lucid_score, named};

const SMALL: Figures = (300, 0, 1, 100);
const IDLE: [u16; 3] = [100, 50, 50];

#[test]
fn every_name_is_a_policy_that_runs_a_lone_job() {
    for name in NAMES {
        let mut world = World::new(name, 1, &[SMALL]);
        assert_eq!(world.submit(1, 1), [(1, 1, vec![0])], "{name}");
        world.end(1, 0);
        assert_eq!(world.finished, [JobId(1)], "{name}");
    }
    assert!(named("fifo", &Profiles::new()).is_none());
}

#[test]
fn exclusive_blocks_at_the_head() {
    let mut world = World::new("exclusive", 2, &[SMALL; 3]);
    assert_eq!(world.submit(1, 1), [(1, 1, vec![0])]);
    assert_eq!(world.submit(2, 2), []);
    assert_eq!(world.submit(3, 1), [], "GPU 1 is idle, but job 2 is ahead");
    assert_eq!(world.end(1, 0), [(2, 1, vec![0, 1])]);
    assert_eq!(world.end(2, 0), [(3, 1, vec![0])]);
}

#[test]
fn the_artifact_starts_one_job_a_second() {
    let mut world = World::new("exclusive", 2, &[SMALL; 2]);
    assert_eq!(world.tell(submitted(1, 1)).len(), 1);
    assert_eq!(world.tell(submitted(2, 1)), []);
    world.now = Moment(999);
    assert_eq!(world.tell(Event::Woken), []);
    world.now = Moment(1_000);
    assert_eq!(world.tell(Event::Woken), [(2, 1, vec![1])]);
}

#[test]
fn horus_fills_the_utilisation_budget_and_ignores_memory() {
    let jobs = [
        (600, 2, 30, 1),
        (500, 2, 30, 1),
        (400, 2, 30, 1),
        (1, 0, 1, 1),
    ];
    let mut world = World::new("horus", 2, &jobs);
    assert_eq!(world.submit(1, 1), [(1, 1, vec![0])]);
    assert_eq!(world.submit(2, 1), [(2, 1, vec![1])]);
    assert_eq!(world.submit(3, 1), [], "both GPUs are closed");
    world.observe(31, 0, &[1], IDLE, 30);
    // GPU 0 alone is open again: 60 % + 40 % is just allowed, and 60 GiB are no obstacle.
    assert_eq!(world.submit(4, 1), [], "GPU 0 is closed by job 3");
    let started = world.observe(32, 1, &[2], IDLE, 30);
    assert_eq!(started, [(4, 1, vec![1])]);
}

#[test]
fn horus_takes_the_gpu_with_the_lowest_projected_utilisation() {
    let jobs = [(600, 0, 1, 1), (500, 0, 1, 1), (400, 0, 1, 1)];
    let mut world = World::new("horus", 2, &jobs);
    world.submit(1, 1);
    world.submit(2, 1);
    world.observe(32, 0, &[1], IDLE, 1);
    world.observe(32, 1, &[2], IDLE, 1);
    assert_eq!(world.submit(3, 1), [(3, 1, vec![1])]);
}

#[test]
fn lucid_adds_scores_and_peaks_and_takes_two_at_most() {
    let refused = |first: Figures, second: Figures| {
        let mut world = World::new("lucid", 1, &[first, second, SMALL]);
        world.submit(1, 1);
        world.observe(32, 0, &[1], IDLE, 1);
        world.submit(2, 1).is_empty()
    };
    assert!(!refused((500, 1, 20, 1), (500, 1, 18, 1)));
    assert!(refused((500, 2, 1, 1), (500, 1, 1, 1)), "score 3");
    assert!(refused((500, 1, 20, 1), (500, 1, 19, 1)), "39 of 38 GiB");

    let mut world = World::new("lucid", 1, &[SMALL; 3]);
    world.submit(1, 1);
    world.observe(32, 0, &[1], IDLE, 1);
    assert_eq!(world.submit(2, 1).len(), 1);
    world.observe(32, 0, &[1, 2], IDLE, 1);
    assert_eq!(world.submit(3, 1), [], "two are there");
}

#[test]
fn aegis_waits_for_a_full_window_and_30_s_of_activity() {
    let mut world = World::new("aegis-released", 1, &[SMALL; 2]);
    world.submit(1, 1);
    world.submit(2, 1);
    assert_eq!(world.observe(40, 0, &[], IDLE, 1), [], "no activity yet");
    assert_eq!(world.observe(29, 0, &[1], IDLE, 1), []);
    assert_eq!(world.observe(3, 0, &[1], IDLE, 1), [(2, 1, vec![0])]);
}

#[test]
fn the_gate_needs_sm_activity_and_one_of_the_two_others() {
    let joins = |name, pressure, used| {
        let mut world = World::new(name, 1, &[SMALL; 2]);
        world.submit(1, 1);
        world.observe(32, 0, &[1], pressure, used);
        !world.submit(2, 1).is_empty()
    };
    assert!(joins("aegis-released", [900, 340, 490], 1));
    assert!(!joins("aegis-released", [650, 350, 0], 1));
    assert!(!joins("aegis-released", [650, 0, 500], 1));
    assert!(joins("aegis-released", [640, 999, 999], 1));
    assert!(joins("aegis-gate-50", [490, 999, 999], 1));
    assert!(!joins("aegis-gate-50", [500, 200, 0], 1));
    // 5 GiB must be free besides the reserve and the guard of 512 MiB each.
    assert!(joins("aegis-released", IDLE, 34));
    assert!(!joins("aegis-released", IDLE, 35));
    // With a known peak of 1 GiB, 3 GiB will do.
    assert!(joins("aegis-peaks", IDLE, 36));
    assert!(!joins("aegis-peaks", IDLE, 37));
}

#[test]
fn aegis_takes_the_gpu_with_most_free_memory() {
    let mut world = World::new("aegis-released", 3, &[SMALL; 4]);
    for job in 1..=3 {
        world.submit(job, 1);
    }
    world.observe(32, 0, &[1], IDLE, 20);
    world.observe(32, 1, &[2], IDLE, 10);
    world.observe(32, 2, &[3], [900, 900, 900], 5);
    assert_eq!(world.submit(4, 1), [(4, 1, vec![1])], "GPU 2 is busy");
}

#[test]
fn a_recovering_job_stalls_everybody_until_a_gpu_is_idle() {
    for name in ["aegis-released", "horus", "lucid"] {
        let mut world = World::new(name, 2, &[SMALL; 5]);
        for job in 1..=2 {
            world.submit(job, 1);
        }
        for (gpu, job) in [(0, 1), (1, 2)] {
            world.observe(32, gpu, &[job], IDLE, 1);
        }
        let third = world.submit(3, 1);
        assert_eq!(third.len(), 1, "{name}");
        assert_eq!(world.end(3, 1), [], "{name}: no GPU is idle");
        assert_eq!(world.submit(4, 1), [], "{name}: job 4 could share");
        world.observe(40, 0, &[1], IDLE, 1);
        assert_eq!(world.submit(5, 1), [], "{name}: still stalled");
        let after = world.end(2, 0);
        assert_eq!(after.first(), Some(&(3, 2, vec![1])), "{name}");
        assert_eq!(after.get(1), Some(&(4, 1, vec![0])), "{name}: over");
    }
}

#[test]
fn horus_paper_looks_five_ahead_and_wants_memory_to_fit() {
    let mut jobs = vec![(300, 0, 35, 1)];
    jobs.extend([(100, 0, 10, 1); 5]);
    jobs.push((200, 0, 1, 1));
    let mut world = World::new("horus-paper", 1, &jobs);
    assert_eq!(world.submit(1, 1), [(1, 1, vec![0])]);
    for job in 2..=6 {
        assert_eq!(world.submit(job, 1), [], "45 of 40 GiB");
    }
    assert_eq!(world.submit(7, 1), [], "sixth in the queue by utilisation");
    let after = world.end(1, 0);
    assert_eq!(after.len(), 3, "three on a GPU");
    assert_eq!(after[0].0, 2);
}

#[test]
fn horus_paper_prefers_an_idle_gpu_to_a_shared_one() {
    let mut world = World::new("horus-paper", 2, &[SMALL; 3]);
    world.submit(1, 1);
    assert_eq!(world.submit(2, 1), [(2, 1, vec![1])]);
    assert_eq!(world.submit(3, 1), [(3, 1, vec![0])]);
}

#[test]
fn lucid_paper_shares_before_it_takes_an_idle_gpu() {
    let mut world = World::new("lucid-paper", 2, &[SMALL; 2]);
    world.submit(1, 1);
    assert_eq!(world.submit(2, 1), [(2, 1, vec![0])]);
}

#[test]
fn lucid_paper_takes_the_shortest_first_and_joins_no_much_shorter_partner() {
    let jobs = [
        (900, 2, 1, 100),
        (500, 1, 1, 300),
        (500, 1, 1, 50),
        (500, 1, 1, 101),
    ];
    let mut world = World::new("lucid-paper", 1, &jobs);
    world.submit(1, 1);
    assert_eq!(world.submit(2, 1), [], "score 3");
    assert_eq!(world.submit(3, 1), []);
    assert_eq!(world.submit(4, 1), []);
    // 3 is the shortest; 4 would need more than twice its service; 2 likewise.
    assert_eq!(world.end(1, 0), [(3, 1, vec![0])]);
    assert_eq!(world.end(3, 0), [(4, 1, vec![0])]);
    assert_eq!(world.finished, [JobId(1), JobId(3)]);
}

#[test]
fn a_job_without_a_profile_shares_with_nobody() {
    for name in ["horus", "horus-paper", "lucid", "lucid-paper"] {
        let mut world = World::new(name, 1, &[SMALL]);
        world.submit(1, 1);
        world.observe(32, 0, &[1], IDLE, 1);
        assert_eq!(world.submit(2, 1), [], "{name}");
    }
}

#[test]
fn scores_follow_the_published_limits() {
    assert_eq!([0.849, 0.85, 0.949, 0.95].map(lucid_score), [2, 1, 1, 0]);
}
