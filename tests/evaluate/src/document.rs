//! The result as a table for people and as one JSON document.

use std::collections::BTreeMap;

use aegis_daemon::replay::stats;
use serde::Serialize;

use crate::calibration::Calibration;
use crate::compare::Compared;
use crate::figures::Summary;
use crate::scenario::Scenario;
use crate::target::{Judged, judge};

/// Everything that was found.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Document {
    summary: Vec<Row>,
    /// Makespan ratio that no policy can pass, by number of GPUs.
    lower_bound: BTreeMap<u32, f64>,
    calibration: Calibration,
    targets: Vec<Judged>,
}

/// One policy on one machine.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) policy: &'static str,
    pub(crate) history: String,
    pub(crate) gpus: u32,
    /// What telemetry there was: `gpm` or `nvml`.
    pub(crate) tier: &'static str,
    traces: usize,
    #[serde(flatten)]
    means: BTreeMap<&'static str, f64>,
    /// Share of the used GPU-seconds that was thrown away.
    lost_share: f64,
    /// Jobs that did not complete, over all traces.
    failed: usize,
    ci95: BTreeMap<&'static str, f64>,
}

impl Row {
    /// A mean by its name.
    pub(crate) fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "lost_share" => Some(self.lost_share),
            name => self.means.get(name).copied(),
        }
    }
}

impl Document {
    /// Adds the figures of a machine.
    pub(crate) fn add(&mut self, scenario: &Scenario, compared: &Compared) {
        let gpus = scenario.gpus();
        self.lower_bound
            .insert(gpus, stats::mean(&compared.lower_bounds));
        for (contender, figures) in &compared.figures {
            let summary = Summary::new(figures.iter());
            self.summary.push(Row {
                policy: contender.name,
                history: contender.history.to_string(),
                gpus,
                tier: scenario.tier(),
                traces: summary.traces,
                means: summary.means,
                lost_share: summary.lost_share,
                failed: summary.failed,
                ci95: summary.half_widths,
            });
        }
        self.summary.sort_by(|a, b| {
            let makespan = |row: &Row| row.means.get("makespan").copied().unwrap_or(0.0);
            a.gpus
                .cmp(&b.gpus)
                .then(makespan(b).total_cmp(&makespan(a)))
        });
    }

    /// Compares with what was published and what is wanted, once all machines are there.
    pub(crate) fn judge(&mut self, testbed: &Scenario) {
        self.calibration = Calibration::new(testbed, &self.summary);
        self.targets = judge(&self.summary);
    }

    /// Shows the figures on standard error.
    pub(crate) fn print_table(&self) {
        eprintln!(
            "{:<16} {:<8} {:>4} {:<4} {:>15} {:>6} {:>6} {:>6} {:>7} {:>6} {:>6} {:>7} {:>6} {:>5} {:>6}",
            "policy",
            "history",
            "gpus",
            "tier",
            "makespan",
            "jct",
            "exec",
            "p95 ex",
            "p95 slo",
            "max",
            "ooms",
            "requeue",
            "lost %",
            "hurt",
            "failed"
        );
        for row in &self.summary {
            let mean = |name: &str| row.means.get(name).copied().unwrap_or(f64::NAN);
            let half = row.ci95.get("makespan").copied().unwrap_or(0.0);
            eprintln!(
                "{:<16} {:<8} {:>4} {:<4} {:>8.3} ±{:>5.3} {:>6.3} {:>6.2} {:>6.2} {:>7.2} {:>6.2} {:>6.2} {:>7.2} {:>6.2} {:>5.2} {:>6}",
                row.policy,
                row.history,
                row.gpus,
                row.tier,
                mean("makespan"),
                half,
                mean("jct"),
                mean("exec"),
                mean("p95_exec"),
                mean("p95_slowdown"),
                mean("max_slowdown"),
                mean("oom_kills"),
                mean("requeues"),
                row.lost_share * 100.0,
                mean("incumbents_hurt"),
                row.failed
            );
        }
        for (gpus, bound) in &self.lower_bound {
            eprintln!("lower bound with {gpus} GPUs: {bound:.3}");
        }
        self.calibration.print();
        self.targets.iter().for_each(Judged::print);
    }
}
