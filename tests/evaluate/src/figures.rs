//! The figures of a policy: of one trace, and over all.

use std::collections::BTreeMap;

use aegis_daemon::replay::{Report, stats};

/// How many figures there are.
const COUNT: usize = 14;

/// Names of the figures. The first five are ratios to exclusive use of the same trace;
/// `p95_slowdown` and `max_slowdown` are over a job's time alone, `stretch_p95` is the time from
/// submission to end over it; the others are per trace: attempts, GPU-seconds and seconds.
pub(crate) const NAMES: [&str; COUNT] = [
    "makespan",
    "jct",
    "p95_jct",
    "exec",
    "p95_exec",
    "p95_slowdown",
    "max_slowdown",
    "stretch_p95",
    "oom_kills",
    "requeues",
    "gpu_s_lost",
    "incumbents_hurt",
    "suspends",
    "relaunch_wait_s",
];

/// One trace under one policy.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    values: [f64; COUNT],
    /// Share of the used GPU-seconds whose work was thrown away.
    pub(crate) lost_share: f64,
    /// Jobs that did not end with exit code 0.
    pub(crate) failed: usize,
}

impl Figures {
    /// Relative to exclusive use of the same trace.
    pub(crate) fn new(report: &Report, exclusive: &Report) -> Self {
        let ratio = |mine: f64, base: f64| if base > 0.0 { mine / base } else { 0.0 };
        Self {
            values: [
                ratio(report.makespan, exclusive.makespan),
                ratio(report.jct, exclusive.jct),
                ratio(report.p95_jct, exclusive.p95_jct),
                ratio(report.exec, exclusive.exec),
                ratio(report.p95_exec, exclusive.p95_exec),
                report.p95_slowdown,
                report.max_slowdown,
                report.stretch_p95,
                report.oom_kills as f64,
                report.requeues as f64,
                report.gpu_s_lost,
                report.incumbents_hurt as f64,
                report.suspends as f64,
                report.relaunch_wait_s,
            ],
            lost_share: report.lost_share,
            failed: report.jobs - report.completed,
        }
    }
}

/// Means over traces.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    /// How many traces.
    pub(crate) traces: usize,
    /// By name.
    pub(crate) means: BTreeMap<&'static str, f64>,
    /// Half widths of the 95 % confidence intervals, by name.
    pub(crate) half_widths: BTreeMap<&'static str, f64>,
    /// See [`Figures::lost_share`].
    pub(crate) lost_share: f64,
    /// See [`Figures::failed`]; the sum.
    pub(crate) failed: usize,
}

impl Summary {
    /// Over these traces.
    pub(crate) fn new<'a>(figures: impl Iterator<Item = &'a Figures> + Clone) -> Self {
        let (mut means, mut half_widths) = (BTreeMap::new(), BTreeMap::new());
        for (place, name) in NAMES.into_iter().enumerate() {
            let values: Vec<f64> = figures
                .clone()
                .filter_map(|figures| figures.values.get(place).copied())
                .collect();
            means.insert(name, stats::mean(&values));
            half_widths.insert(name, stats::half_width(&values));
        }
        let lost: Vec<f64> = figures.clone().map(|figures| figures.lost_share).collect();
        Self {
            traces: lost.len(),
            means,
            half_widths,
            lost_share: stats::mean(&lost),
            failed: figures.map(|figures| figures.failed).sum(),
        }
    }
}
