//! Whether the ranking ours < AEGIS as released < Lucid survives another truth.

use std::collections::BTreeMap;

use aegis_daemon::replay::Interference;
use serde::Serialize;

use crate::compare::compare;
use crate::figures::Summary;
use crate::policy::{Contender, History};
use crate::scenario::Scenario;

/// Best first.
const RANKING: [&str; 3] = ["balanced", "aegis-released", "lucid"];

/// One changed assumption and the makespans under it.
#[derive(Debug, Serialize)]
pub(crate) struct Variant {
    assumption: &'static str,
    makespan: BTreeMap<&'static str, f64>,
    exec: BTreeMap<&'static str, f64>,
    ranking_holds: bool,
}

/// Changes one assumption at a time on three GPUs.
pub(crate) fn sensitivity(seeds: u64) -> Vec<Variant> {
    type Change = fn(&mut Scenario);
    let changes: [(&'static str, Change); 8] = [
        ("as calibrated", |_| {}),
        ("interference × 0.5", |one| {
            one.machine.interference_factor *= 0.5;
        }),
        ("interference × 2", |one| {
            one.machine.interference_factor *= 2.0;
        }),
        ("pairs by the asymmetric formula", |one| {
            one.machine.interference = Interference::Asymmetric;
        }),
        ("telemetry noise 3 % -> 15 %", |one| {
            one.machine.telemetry_noise = 0.15;
        }),
        ("telemetry shows all activity", |one| {
            one.machine.telemetry_factor = 1.0;
        }),
        ("each further job costs all 5 %", |one| {
            one.machine.co_resident_cost = 0.05;
        }),
        ("half the CPU cores", |one| one.machine.cpu_cores *= 0.5),
    ];
    let variants = changes.into_iter().map(|(assumption, change)| {
        let mut scenario = Scenario::machine(3);
        change(&mut scenario);
        variant(assumption, &scenario, seeds)
    });
    variants.collect()
}

fn variant(assumption: &'static str, scenario: &Scenario, seeds: u64) -> Variant {
    let contenders = RANKING.map(|name| Contender {
        name,
        history: History::Cold,
    });
    let compared = compare(scenario, &contenders, seeds);
    let (mut makespan, mut exec) = (BTreeMap::new(), BTreeMap::new());
    for (contender, figures) in &compared.figures {
        let means = Summary::new(figures.iter()).means;
        let mean = |name| means.get(name).copied().unwrap_or(f64::NAN);
        makespan.insert(contender.name, mean("makespan"));
        exec.insert(contender.name, mean("exec"));
    }
    let ranked = RANKING.map(|name| makespan.get(name).copied().unwrap_or(f64::NAN));
    Variant {
        assumption,
        ranking_holds: ranked.is_sorted_by(|better, worse| better < worse),
        makespan,
        exec,
    }
}

impl Variant {
    /// Shows it on standard error.
    pub(crate) fn print(&self) {
        let shown = RANKING.map(|name| {
            let figure = |map: &BTreeMap<_, f64>| map.get(name).copied().unwrap_or(f64::NAN);
            format!(
                "{name} {:.3}/{:.2}",
                figure(&self.makespan),
                figure(&self.exec)
            )
        });
        let verdict = if self.ranking_holds { "holds" } else { "FAILS" };
        eprintln!(
            "{:<32} {}  ranking {verdict}",
            self.assumption,
            shown.join("  ")
        );
    }
}
