//! What the policies must reach, and whether they do.

use serde::Serialize;

use crate::document::Row;

/// A figure that a policy must not exceed.
struct Target {
    policy: &'static str,
    history: &'static str,
    tier: &'static str,
    figure: &'static str,
    at_most: f64,
}

const fn target(
    policy: &'static str,
    history: &'static str,
    figure: &'static str,
    at_most: f64,
) -> Target {
    Target {
        policy,
        history,
        tier: "gpm",
        figure,
        at_most,
    }
}

/// On three GPUs, relative to exclusive use where the figure is a ratio.
const TARGETS: [Target; 10] = [
    target("balanced", "cold", "makespan", 0.745),
    target("balanced", "cold", "jct", 0.58),
    target("balanced", "cold", "exec", 1.30),
    target("balanced", "cold", "p95_slowdown", 1.95),
    target("balanced", "cold", "incumbents_hurt", 0.0),
    target("balanced", "cold", "lost_share", 0.01),
    target("throughput", "warm60", "makespan", 0.71),
    target("shortest", "warm60", "jct", 0.42),
    target("shortest", "warm60", "makespan", 0.80),
    Target {
        tier: "nvml",
        ..target("balanced", "cold", "makespan", 0.86)
    },
];

/// A target and what was found; only those of the policies that ran.
#[derive(Debug, Serialize)]
pub(crate) struct Judged {
    policy: &'static str,
    history: &'static str,
    tier: &'static str,
    figure: &'static str,
    at_most: f64,
    found: f64,
    reached: bool,
}

/// Judges the rows of three GPUs.
pub(crate) fn judge(rows: &[Row]) -> Vec<Judged> {
    let judged = TARGETS.iter().filter_map(|target| {
        let row = rows.iter().find(|row| {
            row.gpus == 3
                && row.policy == target.policy
                && row.history == target.history
                && row.tier == target.tier
        });
        let found = row?.figure(target.figure)?;
        Some(Judged {
            policy: target.policy,
            history: target.history,
            tier: target.tier,
            figure: target.figure,
            at_most: target.at_most,
            found,
            reached: found <= target.at_most,
        })
    });
    judged.collect()
}

impl Judged {
    /// Shows it on standard error.
    pub(crate) fn print(&self) {
        let verdict = if self.reached { "reached" } else { "MISSED" };
        eprintln!(
            "target {:<10} {:<7} {:<5} {:<16} {:>6.3} at most {:>6.3}  {verdict}",
            self.policy, self.history, self.tier, self.figure, self.found, self.at_most
        );
    }
}
