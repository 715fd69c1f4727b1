//! How well the replay meets what was measured on the published testbed: three A100, one run per
//! trace (arXiv 2508.19073 and its artifact's report; geometric means over Philly, Saturn, Venus).

use aegis_daemon::replay::profile::COUNTED;
use serde::Serialize;

use crate::document::Row;
use crate::scenario::Scenario;

/// Policy, makespan and mean execution time relative to exclusive use.
const PUBLISHED: [(&str, f64, f64); 3] = [
    ("horus", 0.924, 1.03),
    ("lucid", 0.865, 1.09),
    ("aegis-released", 0.730, 1.55),
];
/// How far off the makespan may be.
const MAKESPAN_WITHIN: f64 = 0.03;
/// How far off the execution time may be.
const EXEC_WITHIN: f64 = 0.15;

/// The fitted knobs and how well they fit.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Calibration {
    fitted: Option<Fitted>,
    policies: Vec<Compared>,
}

/// Everything that was fitted to the published ratios; nothing else was.
#[derive(Debug, Serialize)]
struct Fitted {
    /// Scales what a neighbour adds to a job's time.
    interference_factor: f64,
    /// Share of the true activity that telemetry shows.
    telemetry_factor: f64,
    /// Share of ln slowdown that Lucid's classifier was trained on.
    lucid_counted: f64,
}

#[derive(Debug, Serialize)]
struct Compared {
    policy: &'static str,
    published_makespan: f64,
    makespan: f64,
    published_exec: f64,
    exec: f64,
    within: bool,
}

impl Calibration {
    /// From the rows of three GPUs.
    pub(crate) fn new(scenario: &Scenario, rows: &[Row]) -> Self {
        let compared = PUBLISHED
            .iter()
            .filter_map(|&(policy, makespan, exec)| compare(rows, policy, makespan, exec));
        Self {
            fitted: Some(Fitted {
                interference_factor: scenario.machine.interference_factor,
                telemetry_factor: scenario.machine.telemetry_factor,
                lucid_counted: COUNTED,
            }),
            policies: compared.collect(),
        }
    }

    /// Shows it on standard error.
    pub(crate) fn print(&self) {
        if let Some(fitted) = &self.fitted {
            eprintln!(
                "fitted to published ratios: interference × {}, telemetry × {}, Lucid's classes × {}",
                fitted.interference_factor, fitted.telemetry_factor, fitted.lucid_counted
            );
        }
        for one in &self.policies {
            eprintln!(
                "calibration {:<15} makespan {:.3} (published {:.3}), exec {:.2} (published {:.2})  {}",
                one.policy,
                one.makespan,
                one.published_makespan,
                one.exec,
                one.published_exec,
                if one.within { "within" } else { "OFF" }
            );
        }
    }
}

fn compare(
    rows: &[Row],
    policy: &'static str,
    published_makespan: f64,
    published_exec: f64,
) -> Option<Compared> {
    let row = rows
        .iter()
        .find(|row| row.gpus == 3 && row.policy == policy && row.tier == "gpm")?;
    let (makespan, exec) = (row.figure("makespan")?, row.figure("exec")?);
    Some(Compared {
        policy,
        published_makespan,
        makespan,
        published_exec,
        exec,
        within: (makespan - published_makespan).abs() <= MAKESPAN_WITHIN
            && (exec - published_exec).abs() <= EXEC_WITHIN,
    })
}
