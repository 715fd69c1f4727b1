//! What policies reached, as means over the traces.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::replay::{Report, stats};

/// A figure of a report.
struct Figure {
    name: &'static str,
    of: fn(&Report) -> f64,
    /// It is a time, of which the ratio to exclusive use means something.
    relative: bool,
}

const fn time(name: &'static str, of: fn(&Report) -> f64) -> Figure {
    let relative = true;
    Figure { name, of, relative }
}

const fn plain(name: &'static str, of: fn(&Report) -> f64) -> Figure {
    let relative = false;
    Figure { name, of, relative }
}

/// Seconds, slowdowns (1: as fast as alone), attempts of a trace, shares of 1, jobs of a trace.
const FIGURES: [Figure; 15] = [
    time("makespan", |one| one.makespan),
    time("jct", |one| one.jct),
    time("p95_jct", |one| one.p95_jct),
    time("exec", |one| one.exec),
    time("p95_exec", |one| one.p95_exec),
    plain("p95_slowdown", |one| one.p95_slowdown),
    plain("max_slowdown", |one| one.max_slowdown),
    plain("oom_kills", |one| one.oom_kills as f64),
    plain("requeues", |one| one.requeues as f64),
    plain("suspends", |one| one.suspends as f64),
    plain("incumbents_hurt", |one| one.incumbents_hurt as f64),
    plain("gpu_s_lost", |one| one.gpu_s_lost),
    plain("lost_share", |one| one.lost_share),
    plain("failed", |one| {
        one.jobs.saturating_sub(one.completed + one.unfinished) as f64
    }),
    plain("unfinished", |one| one.unfinished as f64),
];

/// One policy.
#[derive(Clone, Debug, Serialize)]
pub(in crate::cli) struct Row {
    /// Its name.
    pub policy: &'static str,
    /// Means over the traces, by name.
    pub absolute: BTreeMap<&'static str, f64>,
    /// Means of the ratios to exclusive use of the same trace.
    pub relative: BTreeMap<&'static str, f64>,
    /// Half widths of the 95 % confidence intervals of `relative`; of one trace there are none.
    pub ci95: BTreeMap<&'static str, f64>,
}

impl Row {
    /// From the reports on each trace, and those of exclusive use on the same ones.
    pub(super) fn new(policy: &'static str, reports: &[&Report], exclusive: &[&Report]) -> Self {
        let mut row = Self {
            policy,
            absolute: BTreeMap::new(),
            relative: BTreeMap::new(),
            ci95: BTreeMap::new(),
        };
        for Figure { name, of, relative } in FIGURES {
            let values: Vec<f64> = reports.iter().map(|one| of(one)).collect();
            row.absolute.insert(name, stats::mean(&values));
            if !relative {
                continue;
            }
            let bases = exclusive.iter().map(|one| of(one));
            let ratios: Vec<f64> = values
                .iter()
                .zip(bases)
                .filter(|(_, base)| *base > 0.0)
                .map(|(value, base)| value / base)
                .collect();
            row.relative.insert(name, stats::mean(&ratios));
            if ratios.len() > 1 {
                row.ci95.insert(name, stats::half_width(&ratios));
            }
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_formed_trace_by_trace() {
        let report = |makespan, completed| Report {
            jobs: 3,
            completed,
            makespan,
            ..Report::default()
        };
        let (mine, base) = (
            [report(50.0, 3), report(300.0, 2)],
            [report(100.0, 3), report(200.0, 3)],
        );
        let row = Row::new("control", &mine.each_ref(), &base.each_ref());
        assert_eq!(row.absolute["makespan"], 175.0);
        assert_eq!(row.relative["makespan"], 1.0);
        assert_eq!(row.absolute["failed"], 0.5);
        assert!(row.ci95["makespan"] > 0.0);
        assert!(!row.relative.contains_key("oom_kills"));
        let alone = Row::new("control", &[&mine[0]], &[&base[0]]);
        assert!(alone.ci95.is_empty());
    }
}
