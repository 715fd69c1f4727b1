//! `cargo xtask evaluate`: the published baselines and the core's modes on generated traces.

mod compare;
mod document;
mod figures;
mod history;
mod plot;
mod policy;
mod scenario;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

use self::compare::compare;
use self::document::Document;
use self::policy::{History, contenders};
use self::scenario::Scenario;

#[derive(Parser)]
#[command(
    about = "Replays generated traces under every policy: ratios to exclusive use",
    after_help = "Examples:\n  cargo xtask evaluate --quick\n  \
                  cargo xtask evaluate --policies control,balanced --gpus 3\n  \
                  cargo xtask evaluate --json > evaluation.json"
)]
struct Arguments {
    /// 3 seeds per shape instead of 20
    #[arg(long)]
    quick: bool,
    /// Seeds per shape
    #[arg(long)]
    seeds: Option<u64>,
    /// Only these policies (exclusive is always run)
    #[arg(long, value_delimiter = ',')]
    policies: Vec<String>,
    /// Only the machine with that many GPUs; both 3 and 8 if not given
    #[arg(long)]
    gpus: Option<u32>,
    /// Only cold histories
    #[arg(long)]
    cold: bool,
    /// Only NVML utilisation is measured
    #[arg(long)]
    nvml_only: bool,
    /// Scales what neighbours add to each other's time
    #[arg(long)]
    interference: Option<f64>,
    /// Telemetry shows this share of the true activity
    #[arg(long)]
    telemetry: Option<f64>,
    /// What each further job on a GPU adds to everybody's time, as a share of the time alone
    #[arg(long)]
    contention: Option<f64>,
    /// Draws makespan against slowdown, and one trace over time, into SVG files in this directory
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// One JSON document on standard output
    #[arg(long)]
    json: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let seeds = arguments
        .seeds
        .unwrap_or(if arguments.quick { 3 } else { 20 });
    let histories: &[History] = if arguments.cold {
        &[History::Cold]
    } else {
        &[
            History::Cold,
            History::Warm(30),
            History::Warm(60),
            History::Warm(100),
        ]
    };
    let chosen = contenders(&arguments.policies, histories)?;
    let machines = arguments.gpus.map_or(vec![3, 8], |gpus| vec![gpus]);
    let mut document = Document::default();
    for gpus in machines {
        let mut scenario = Scenario::machine(gpus);
        if arguments.nvml_only {
            scenario.machine.tier = aegis_common::policy::Tier::Utilisation;
        }
        if let Some(factor) = arguments.interference {
            scenario.machine.interference_factor *= factor;
        }
        if let Some(factor) = arguments.telemetry {
            scenario.machine.telemetry_factor = factor;
        }
        if let Some(share) = arguments.contention {
            scenario.machine.co_resident_cost = share;
        }
        let compared = compare(&scenario, &chosen, seeds);
        if let Some(directory) = &arguments.plot {
            plot::plot(directory, &scenario, &compared)?;
        }
        document.add(&scenario, &compared);
    }
    document.print_table();
    if arguments.json {
        println!("{}", serde_json::to_string(&document)?);
    }
    Ok(())
}
