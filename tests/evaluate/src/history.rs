//! What a policy has learned from earlier, disjoint windows.

use std::collections::BTreeMap;

use aegis_common::learned::{Learned, Observed};
use aegis_daemon::learning;
use aegis_daemon::replay::generate::Shape;
use aegis_daemon::replay::policy::{scheduler, told};
use aegis_daemon::replay::trace::TraceJob;
use aegis_daemon::replay::{random, run_with_history};

use crate::policy::{Contender, History};
use crate::scenario::Scenario;

/// Earlier windows: with near-uniform use of the catalogue they show each command about thrice.
const WINDOWS: u64 = 3;
/// Their seeds start here, far from those that are judged.
const FIRST_SEED: u64 = 1_000_000;

/// What is known by program, which stands for (user, command).
pub(crate) type Known = BTreeMap<usize, Learned>;

/// Runs a policy over earlier windows of a shape, each with what the ones before taught.
pub(crate) fn learn(contender: Contender, scenario: &Scenario, shape: Shape) -> Known {
    let mut records: BTreeMap<usize, Vec<Observed>> = BTreeMap::new();
    let mut known = Known::new();
    if contender.history == History::Cold {
        return known;
    }
    let mut machine = scenario.machine.clone();
    machine.policy = told(contender.name, &machine.policy);
    for window in 0..WINDOWS {
        let seed = FIRST_SEED + window;
        let trace = scenario.trace(shape, seed);
        let lookup = |job: &TraceJob| known.get(&job.workload).cloned().unwrap_or_default();
        let core = scheduler(contender.name, &BTreeMap::new());
        let outcome = run_with_history(&trace, &machine, core, seed, &lookup);
        for (place, observed) in outcome.taught {
            let workload = trace.jobs.get(place).map(|job| job.workload);
            records
                .entry(workload.unwrap_or(usize::MAX))
                .or_default()
                .push(observed);
        }
        known = records
            .iter()
            .map(|(&workload, runs)| (workload, summary(runs)))
            .collect();
    }
    known
}

fn summary(runs: &[Observed]) -> Learned {
    Learned {
        exact: true,
        ..learning::summary(runs)
    }
}

/// Whether a job's command was seen before: of that many in a hundred, the same ones for every
/// policy.
pub(crate) fn seen(history: History, seed: u64, submit_ms: u64) -> bool {
    match history {
        History::Cold => false,
        History::Warm(percent) => random::even(seed, submit_ms) * 100.0 < f64::from(percent),
    }
}
