//! Every contender on every trace, on as many threads as there are processors.

use std::collections::BTreeMap;

use aegis_daemon::replay::generate::Shape;
use aegis_daemon::replay::policy::{EXCLUSIVE, scheduler, told};
use aegis_daemon::replay::profile::profiles;
use aegis_daemon::replay::trace::TraceJob;
use aegis_daemon::replay::{self, MachineConfig, Report, run_with_history};

use crate::figures::Figures;
use crate::history::{Known, learn, seen};
use crate::policy::{Contender, History};
use crate::scenario::Scenario;

/// What a contender reached on each trace, and the bound no policy can pass.
pub(crate) struct Compared {
    pub(crate) figures: BTreeMap<Contender, Vec<Figures>>,
    /// Σ SM activity × work / (what a GPU delivers × GPUs), relative to exclusive use; one per
    /// trace.
    pub(crate) lower_bounds: Vec<f64>,
}

/// Runs all contenders on `seeds` traces of each published shape.
pub(crate) fn compare(scenario: &Scenario, contenders: &[Contender], seeds: u64) -> Compared {
    let warm = shapes(contenders);
    let known: Vec<Known> = parallel(&warm, |&(contender, shape)| {
        learn(contender, scenario, shape)
    });
    let known: BTreeMap<(Contender, Shape), Known> = warm.into_iter().zip(known).collect();
    let traces: Vec<(Shape, u64)> = Shape::PUBLISHED
        .into_iter()
        .flat_map(|shape| (0..seeds).map(move |seed| (shape, seed)))
        .collect();
    let results = parallel(&traces, |&(shape, seed)| {
        one_trace(scenario, contenders, &known, shape, seed)
    });
    let mut figures: BTreeMap<Contender, Vec<Figures>> = BTreeMap::new();
    let mut lower_bounds = Vec::new();
    for (bound, row) in results {
        lower_bounds.push(bound);
        for (&contender, one) in contenders.iter().zip(row) {
            figures.entry(contender).or_default().push(one);
        }
    }
    Compared {
        figures,
        lower_bounds,
    }
}

fn shapes(contenders: &[Contender]) -> Vec<(Contender, Shape)> {
    let warm = contenders.iter().filter(|one| one.history != History::Cold);
    warm.flat_map(|&one| Shape::PUBLISHED.map(|shape| (one, shape)))
        .collect()
}

fn one_trace(
    scenario: &Scenario,
    contenders: &[Contender],
    known: &BTreeMap<(Contender, Shape), Known>,
    shape: Shape,
    seed: u64,
) -> (f64, Vec<Figures>) {
    let trace = scenario.trace(shape, seed);
    let machine = &scenario.machine;
    let profiles = profiles(&trace, machine.context, seed);
    let report = |contender: Contender| {
        let config = MachineConfig {
            policy: told(contender.name, &machine.policy),
            ..machine.clone()
        };
        let known = known.get(&(contender, shape));
        let lookup = |job: &TraceJob| {
            let known = known.filter(|_| seen(contender.history, seed, job.submit_ms));
            let learned = known.and_then(|known| known.get(&job.workload));
            learned.cloned().unwrap_or_default()
        };
        let policy = scheduler(contender.name, &profiles);
        Report::new(&run_with_history(&trace, &config, policy, seed, &lookup))
    };
    let exclusive = report(Contender {
        name: EXCLUSIVE,
        history: History::Cold,
    });
    let work: f64 = trace
        .jobs
        .iter()
        .filter_map(|job| {
            let workload = trace.workloads.get(job.workload)?;
            Some(workload.sm_active * trace.solo_s(job) * f64::from(job.gpus))
        })
        .sum();
    let least = work / (machine.busy_cap * f64::from(machine.gpus));
    let figures = contenders
        .iter()
        .map(|&contender| Figures::new(&report(contender), &exclusive));
    (least / exclusive.makespan, figures.collect())
}

fn parallel<T: Sync, R: Send>(items: &[T], map: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let results = replay::parallel(items, map, |done| {
        if done.is_multiple_of(10) {
            eprint!("\r{done} of {} traces ", items.len());
        }
    });
    eprint!("\r                         \r");
    results
}
