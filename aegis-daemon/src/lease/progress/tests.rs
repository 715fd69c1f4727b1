//! Periods, fingerprints and rates of made-up launch sequences.
#![cfg(test)]

use aegis_common::abi::trace::{TRACE_ENTRIES, Trace as Layout};
use proptest::prelude::*;

use super::fingerprint::fingerprint;
use super::period::period;
use super::{Pace, Trace, Tracker};

const SECOND: u64 = 1_000_000_000;

/// A launch of that function, with a grid of that size.
const fn launch(function: u64, grid: u64) -> u64 {
    (function << 32) | grid
}

/// A step of a model with layers that are alike: a loop within the step.
fn step(batch: u64) -> Vec<u64> {
    let layer = [1, 2, 3, 2, 4].map(|function| launch(function, batch));
    let mut step = layer.repeat(12);
    step.extend((5..12).map(|function| launch(function, batch)));
    step
}

/// A process that launches, seen through its trace.
#[derive(Default)]
struct Process {
    launched: Vec<u64>,
    tracker: Tracker,
    now_ns: u64,
}

impl Process {
    fn trace(launched: &[u64]) -> Trace {
        let first = launched.len().saturating_sub(TRACE_ENTRIES - 1).max(1);
        Trace {
            marks: launched.len() as u64,
            sum: launched.iter().copied().fold(0, u64::wrapping_add),
            launches: launched[first..].to_vec(),
        }
    }

    /// Launches for a second, then looks.
    fn second(&mut self, launches: impl IntoIterator<Item = u64>) -> Option<Pace> {
        self.launched.extend(launches);
        self.now_ns += SECOND;
        let trace = Self::trace(&self.launched);
        let marks = [trace.marks];
        self.tracker
            .look(self.now_ns, 0, &marks, |_| Some(trace.clone()))
    }

    /// The first pace of `seconds`, in which `each` is launched over and over, `count` launches a
    /// second.
    fn run(&mut self, seconds: usize, each: &[u64], count: usize) -> Option<Pace> {
        let mut next = each.iter().copied().cycle();
        let mut found = None;
        for _ in 0..seconds {
            let launches: Vec<_> = next.by_ref().take(count).collect();
            found = found.or(self.second(launches));
        }
        found
    }
}

#[test]
fn the_step_is_found_and_not_the_loop_in_it() {
    let step = step(8);
    let launches: Vec<u64> = step.repeat(5);
    for end in step.len() * 2..launches.len() {
        assert_eq!(period(&launches[..end]), Some(step.len()), "{end}");
    }
    assert_eq!(period(&[7; 31]), None, "too few");
    assert_eq!(period(&[7; 32]), Some(1));
    let never: Vec<u64> = (0..8000).collect();
    assert_eq!(period(&never), None);
}

#[test]
fn what_came_before_does_not_matter() {
    let mut launches: Vec<u64> = (1000..3000).collect();
    launches.extend(step(8).repeat(3));
    assert_eq!(period(&launches), Some(step(8).len()));
}

#[test]
fn the_fingerprint_is_the_same_from_anywhere_and_in_the_next_run() {
    let step = step(8);
    let mut turned = step.clone();
    for _ in 0..step.len() {
        turned.rotate_left(1);
        assert_eq!(fingerprint(&turned), fingerprint(&step));
    }
    let elsewhere = |launch: &u64| launch + (0x7f00_0000 << 32);
    let moved: Vec<u64> = step.iter().map(elsewhere).collect();
    assert_eq!(fingerprint(&moved), fingerprint(&step));
    assert_ne!(fingerprint(&super::tests::step(16)), fingerprint(&step));
    // Two graphs differ by nothing but their addresses.
    assert_ne!(fingerprint(&[launch(1, 0)]), fingerprint(&[launch(2, 0)]));
}

#[test]
fn a_looping_process_has_a_rate() {
    let step = step(8);
    // 20.5 steps a second.
    let pace = Process::default()
        .run(9, &step, step.len() * 41 / 2)
        .unwrap();
    assert_eq!(pace.period, step.len() as u64);
    assert!(
        (20_300_000..20_700_000).contains(&pace.rate_uhz),
        "{pace:?}"
    );
    assert!((3000..=4000).contains(&pace.window_ms), "{pace:?}");
}

#[test]
fn more_launches_between_looks_than_the_trace_holds_are_no_trouble() {
    let pace = Process::default().run(9, &step(8), 100_000).unwrap();
    let expected = 100_000 * 1_000_000 / step(8).len() as u64;
    assert!(
        pace.rate_uhz.abs_diff(expected) < expected / 1000,
        "{pace:?}"
    );
}

#[test]
fn something_else_between_two_looks_ends_the_window() {
    let mut process = Process::default();
    let step = step(8);
    let second = step.repeat(200);
    let mut told = 0;
    for _ in 0..20 {
        // An evaluation, long forgotten by the trace when it is looked at.
        let other = [launch(99, 8); 50];
        let launches = second.iter().chain(&other).chain(&second).copied();
        told += usize::from(process.second(launches).is_some());
    }
    assert_eq!(told, 0);
}

#[test]
fn phases_have_paces_of_their_own() {
    let mut process = Process::default();
    let eager = process.run(12, &step(8), 3000).unwrap();
    let graph = process.run(12, &[launch(77, 0)], 40).unwrap();
    let larger = process.run(12, &step(16), 1500).unwrap();
    assert_eq!((graph.period, graph.rate_uhz / 1_000_000), (1, 40));
    assert_ne!(eager.fingerprint, larger.fingerprint);
    assert_ne!(eager.fingerprint, graph.fingerprint);
    // Nothing that was measured lies across a change.
    for _ in 0..6 {
        assert_eq!(process.run(2, &step(8), 3000), None);
        assert_eq!(process.run(2, &step(16), 3000), None);
    }
}

#[test]
fn few_repetitions_are_not_enough() {
    assert_eq!(Process::default().run(38, &[launch(1, 1)], 1), None);
}

/// Two threads of one process, one launching `a`, the other `b` launches a second.
fn two_threads(a: usize, b: usize, untraced: u64) -> Option<Pace> {
    let mut tracker = Tracker::default();
    let (forward, backward) = (step(8), step(9));
    let mut found = None;
    for second in 1..12 {
        let [one, two] = [(&forward, a), (&backward, b)].map(|(step, count)| {
            let launched = step.iter().copied().cycle().take(count * second);
            Process::trace(&launched.collect::<Vec<_>>())
        });
        let marks = [one.marks, two.marks];
        let now = second as u64;
        let read = |slot| [one.clone(), two.clone()].get(slot).cloned();
        let pace = tracker.look(now * SECOND, untraced * now, &marks, read);
        found = found.or(pace);
    }
    found
}

#[test]
fn threads_must_agree() {
    let length = step(8).len();
    let pace = two_threads(20 * length, 20 * length, 0).unwrap();
    assert_eq!(pace.period, 2 * length as u64);
    assert_eq!(pace.rate_uhz, 20_000_000);
    assert_eq!(two_threads(20 * length, 25 * length, 0), None);
    assert!(two_threads(50 * length, 3, 0).is_some(), "overlooked");
    assert_eq!(two_threads(20 * length, 20 * length, 1), None, "unseen");
}

#[test]
fn entries_written_during_the_copy_are_left_out() {
    let mut bytes = vec![0; size_of::<Layout>()];
    let entries = TRACE_ENTRIES as u64;
    for mark in 0..2 * entries {
        let at = 64 + usize::try_from(mark % entries).unwrap() * 8;
        bytes[at..at + 8].copy_from_slice(&(mark * 3).to_ne_bytes());
    }
    let trace = Trace::decode(&bytes, 2 * entries, 2 * entries + 100);
    assert_eq!(trace.launches, vec![3; TRACE_ENTRIES - 102]);
    assert_eq!(trace.sum, (2 * entries - 1) * 3);
    let overrun = Trace::decode(&bytes, 2 * entries, 4 * entries);
    assert_eq!(overrun.launches, Vec::<u64>::new());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_bytes_are_read_and_followed_without_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..size_of::<Layout>() + 8),
        looks in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()), 1..6),
    ) {
        let mut tracker = Tracker::default();
        for (now, untraced, before, after) in looks {
            let trace = Trace::decode(&bytes, before, after);
            prop_assert!(trace.launches.len() < TRACE_ENTRIES);
            tracker.look(now, untraced, &[before, after], |_| Some(trace.clone()));
        }
    }

    #[test]
    fn the_period_found_is_one_and_the_shortest(
        sequence in proptest::collection::vec(0u64..4, 1..60),
        times in 2usize..6,
        cut in 0usize..60,
    ) {
        let launches = sequence.repeat(times + 32 / sequence.len());
        let launches = &launches[cut.min(sequence.len())..];
        if launches.len() >= 2 * sequence.len() && launches.len() >= 32 {
            let length = period(launches).unwrap();
            prop_assert!(length <= sequence.len());
            prop_assert!(launches.iter().zip(&launches[length..]).all(|(one, next)| one == next));
        }
    }

    #[test]
    fn rotations_of_anything_have_one_fingerprint(
        sequence in proptest::collection::vec((0u64..12, 0u64..3), 1..40),
        turn in 0usize..40,
    ) {
        let sequence: Vec<u64> = sequence.iter().map(|(f, g)| launch(*f, *g)).collect();
        let mut turned = sequence.clone();
        turned.rotate_left(turn % sequence.len());
        prop_assert_eq!(fingerprint(&turned), fingerprint(&sequence));
    }
}
