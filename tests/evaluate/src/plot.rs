//! `--plot DIR`: the comparison as pictures.

use std::fs;
use std::path::Path;

use aegis_daemon::replay::generate::Shape;
use aegis_daemon::replay::plot::{Dot, over_time, scatter};
use aegis_daemon::replay::policy::is_ours;
use aegis_daemon::replay::{self, Case, MachineConfig, Outcome};
use anyhow::{Context, Result};

use crate::compare::Compared;
use crate::figures::Summary;
use crate::policy::{Contender, History};
use crate::scenario::Scenario;

/// The trace that is shown over time.
const SHAPE: Shape = Shape::Saturn;
/// Who is shown over time, where compared: more lines than these cannot be told apart.
const SHOWN: [&str; 5] = [
    "exclusive",
    "lucid",
    "aegis-released",
    "control",
    "balanced",
];

/// Writes `makespan-slowdown-N.svg` and `over-time-N.svg` for a machine of N GPUs.
pub(crate) fn plot(directory: &Path, scenario: &Scenario, compared: &Compared) -> Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    let gpus = scenario.gpus();
    let write = |name: &str, svg: String| {
        let path = directory.join(format!("{name}-{gpus}.svg"));
        fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))
    };
    write("makespan-slowdown", makespan_slowdown(gpus, compared))?;
    write("over-time", one_trace(scenario, compared))
}

fn makespan_slowdown(gpus: u32, compared: &Compared) -> String {
    let dots: Vec<Dot> = compared
        .figures
        .iter()
        .map(|(contender, figures)| {
            let summary = Summary::new(figures.iter());
            let figure = |name: &str| {
                let of = |from: &std::collections::BTreeMap<&str, f64>| {
                    from.get(name).copied().unwrap_or_default()
                };
                (of(&summary.means), of(&summary.half_widths))
            };
            Dot {
                label: label(contender),
                x: figure("makespan"),
                y: figure("p95_slowdown"),
                ours: is_ours(contender.name),
            }
        })
        .collect();
    let traces = compared.lower_bounds.len();
    scatter(
        &format!("{traces} traces on {gpus} GPUs: means and their 95 % intervals"),
        "makespan by that of exclusive use",
        "P95 slowdown by the time alone",
        &dots,
    )
}

fn label(contender: &Contender) -> String {
    match contender.history {
        History::Cold => contender.name.to_owned(),
        warm @ History::Warm(_) => format!("{} {warm}", contender.name),
    }
}

fn one_trace(scenario: &Scenario, compared: &Compared) -> String {
    let case = Case {
        trace: scenario.trace(SHAPE, 0),
        machine: MachineConfig {
            keep_series: true,
            ..scenario.machine.clone()
        },
        seed: 0,
    };
    let has = |name: &str| compared.figures.keys().any(|one| one.name == name);
    let shown: Vec<&str> = SHOWN.into_iter().filter(|name| has(name)).collect();
    let outcomes = replay::parallel(&shown, |policy| case.replay(policy), |_| ());
    let lines: Vec<(&str, &Outcome)> = shown.iter().copied().zip(&outcomes).collect();
    let title = format!(
        "{}, {} jobs on {} GPUs: memory and pressure over time",
        case.trace.name,
        case.trace.jobs.len(),
        case.machine.gpus
    );
    over_time(&title, case.machine.gpu_memory, &lines)
}
