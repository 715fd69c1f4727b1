//! The result as a table for people and as one JSON document.

use std::collections::BTreeMap;

use aegis_daemon::replay::stats;
use serde::Serialize;

use crate::compare::Compared;
use crate::figures::Summary;
use crate::scenario::Scenario;

/// Everything that was found.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Document {
    summary: Vec<Row>,
    /// Makespan ratio that no policy can pass, by number of GPUs.
    lower_bound: BTreeMap<u32, f64>,
}

/// One policy on one machine.
#[derive(Debug, Serialize)]
struct Row {
    policy: &'static str,
    history: String,
    gpus: u32,
    traces: usize,
    #[serde(flatten)]
    means: BTreeMap<&'static str, f64>,
    /// Share of the used GPU-seconds that was thrown away.
    lost_share: f64,
    /// Jobs that did not complete, over all traces.
    failed: usize,
    ci95: BTreeMap<&'static str, f64>,
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

    /// Shows the figures on standard error.
    pub(crate) fn print_table(&self) {
        eprintln!(
            "{:<16} {:<8} {:>4} {:>15} {:>6} {:>6} {:>6} {:>7} {:>6} {:>6} {:>7} {:>6} {:>5} {:>6}",
            "policy",
            "history",
            "gpus",
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
                "{:<16} {:<8} {:>4} {:>8.3} ±{:>5.3} {:>6.3} {:>6.2} {:>6.2} {:>7.2} {:>6.2} {:>6.2} {:>7.2} {:>6.2} {:>5.2} {:>6}",
                row.policy,
                row.history,
                row.gpus,
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
    }
}
