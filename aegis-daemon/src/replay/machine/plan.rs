//! What an attempt does, by how far it has advanced.

use crate::replay::workload::Workload;

/// A step of an attempt's plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// The process makes its first CUDA call: it introduces itself and gets a context.
    Attach,
    /// It holds this share of its peak.
    Allocate(f64),
    /// Its first launch.
    Launch,
    /// An evaluation begins or ends: another launch sequence.
    Evaluate(bool),
    /// The work is done.
    Done,
}

/// The first CUDA call, as a share of the time until the first launch: before it, imports and the
/// data set; after it, the model.
const ATTACH_AT: f64 = 0.8;
/// How the model's memory comes before the first launch, as shares of that rest of the start.
const MODEL: [f64; 3] = [0.6, 0.8, 0.99];
/// How activations and optimizer state come, as shares of the first steps.
const FIRST_STEPS: [f64; 4] = [0.05, 0.2, 0.5, 1.0];
/// An evaluation takes this share of the work, but no more than [`EVALUATION_MAX_S`].
const EVALUATION: f64 = 0.02;
/// See [`EVALUATION`]; seconds.
const EVALUATION_MAX_S: f64 = 60.0;

/// The plan of an attempt: at how many milliseconds of running alone it does what, ascending.
/// `solo_s` is the work of the whole job, `resumed_s` what of it is done, `restore_ms` what
/// loading it adds to the start. Also when it launches first.
pub(super) fn plan(
    workload: &Workload,
    solo_s: f64,
    resumed_s: f64,
    restore_ms: u64,
) -> (Vec<(f64, Step)>, f64) {
    let startup = workload.startup_s.max(0.0) * 1000.0 + restore_ms as f64;
    let left = (solo_s - resumed_s).max(0.0) * 1000.0;
    let memory = workload.memory;
    let at_start = memory.at_start.clamp(0.0, 1.0);
    let after = memory.after_first_steps.clamp(at_start, 1.0);
    let mut plan = vec![(startup * ATTACH_AT, Step::Attach)];
    for (index, when) in MODEL.into_iter().enumerate() {
        let share = at_start * (index + 1) as f64 / MODEL.len() as f64;
        let at = startup * (ATTACH_AT + (1.0 - ATTACH_AT) * when);
        plan.push((at, Step::Allocate(share)));
    }
    plan.push((startup, Step::Launch));
    let first_steps = (memory.first_steps_s.max(0.0) * 1000.0).min(left);
    for (index, when) in FIRST_STEPS.into_iter().enumerate() {
        let grown = (index + 1) as f64 / FIRST_STEPS.len() as f64;
        let share = at_start + (after - at_start) * grown;
        plan.push((startup + first_steps * when, Step::Allocate(share)));
    }
    // A resumed job that was beyond its first evaluation meets the next one after its first steps.
    let work_at_peak = memory.peak_at.clamp(0.0, 1.0) * solo_s;
    let until_peak = ((work_at_peak - resumed_s) * 1000.0).clamp(first_steps, left);
    let evaluation = (solo_s * EVALUATION).min(EVALUATION_MAX_S) * 1000.0;
    if after < 1.0 {
        plan.push((startup + until_peak, Step::Evaluate(true)));
        plan.push((startup + until_peak, Step::Allocate(1.0)));
        let end = (until_peak + evaluation).min(left);
        plan.push((startup + end, Step::Evaluate(false)));
    }
    plan.push((startup + left, Step::Done));
    (plan, startup)
}

#[cfg(test)]
mod tests {
    use super::{Step, plan};
    use crate::replay::tests::workload;

    #[test]
    fn a_plan_ascends_and_ends_after_the_work() {
        let program = workload("a", 0.5, 8);
        for resumed in [0.0, 10.0, 80.0, 99.99, 100.0] {
            let (steps, launch) = plan(&program, 100.0, resumed, 500);
            assert!(
                steps.windows(2).all(|pair| pair[0].0 <= pair[1].0),
                "{steps:?}"
            );
            let last = steps.last().copied();
            assert_eq!(
                last,
                Some((launch + (100.0 - resumed) * 1000.0, Step::Done))
            );
            let most = steps.iter().filter_map(|&(_, step)| match step {
                Step::Allocate(share) => Some(share),
                _ => None,
            });
            let shares: Vec<f64> = most.collect();
            assert!(
                shares.windows(2).all(|pair| pair[0] <= pair[1]),
                "{shares:?}"
            );
            assert_eq!(shares.last(), Some(&1.0));
        }
    }
}
