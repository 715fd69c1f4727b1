//! `cargo xtask evaluate`: the published baselines and the core's modes on generated traces.

mod calibration;
mod compare;
mod document;
mod figures;
mod held_out;
mod history;
mod plot;
mod policy;
mod scenario;
mod sensitivity;
mod target;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

use self::compare::compare;
use self::document::Document;
use self::held_out::{Score, held_out};
use self::policy::{Contender, History, contenders};
use self::scenario::Scenario;
use self::sensitivity::{Variant, sensitivity};

/// Options that say what is compared; two of the tasks below have their own.
const COMPARED: [&str; 8] = [
    "policies",
    "gpus",
    "cold",
    "nvml_only",
    "interference",
    "telemetry",
    "contention",
    "plot",
];

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
    /// What neighbours add to each other's time, by this factor: × the fitted one
    #[arg(long, value_name = "FACTOR")]
    interference: Option<f64>,
    /// The share of the true activity that telemetry shows, by this factor: × the fitted one
    #[arg(long, value_name = "FACTOR")]
    telemetry: Option<f64>,
    /// What each further job on a GPU adds to everybody's time, as a share of the time alone
    #[arg(long)]
    contention: Option<f64>,
    /// Draws makespan against slowdown, and one trace over time, into SVG files in this directory
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Changes one assumption at a time and says where the ranking of policies fails
    #[arg(long, conflicts_with_all = COMPARED, conflicts_with = "data")]
    sensitivity: bool,
    /// Judges the form of the interference model on measured pairs it was not fitted on
    #[arg(long, conflicts_with_all = COMPARED, conflicts_with_all = ["sensitivity", "quick", "seeds"])]
    held_out: bool,
    /// Where the measured pairs of --held-out are
    #[arg(
        long,
        value_name = "FOLDER",
        default_value = "../shared/data",
        requires = "held_out"
    )]
    data: PathBuf,
    /// One JSON document on standard output
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// The machine with that many GPUs, changed as asked.
    fn scenario(&self, gpus: u32) -> Scenario {
        let mut scenario = Scenario::machine(gpus);
        if self.nvml_only {
            scenario = scenario.nvml_only();
        }
        if let Some(factor) = self.interference {
            scenario.machine.interference_factor *= factor;
        }
        if let Some(factor) = self.telemetry {
            scenario.machine.telemetry_factor *= factor;
        }
        if let Some(share) = self.contention {
            scenario.machine.co_resident_cost = share;
        }
        scenario
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let seeds = arguments
        .seeds
        .unwrap_or(if arguments.quick { 3 } else { 20 });
    if arguments.held_out {
        let scores = held_out(&arguments.data)?;
        scores.iter().for_each(Score::print);
        if arguments.json {
            println!("{}", serde_json::to_string(&scores)?);
        }
        return Ok(());
    }
    if arguments.sensitivity {
        let variants = sensitivity(seeds);
        variants.iter().for_each(Variant::print);
        if arguments.json {
            println!("{}", serde_json::to_string(&variants)?);
        }
        return Ok(());
    }
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
    for &gpus in &machines {
        let scenario = arguments.scenario(gpus);
        let compared = compare(&scenario, &chosen, seeds);
        if let Some(directory) = &arguments.plot {
            plot::plot(directory, &scenario, &compared)?;
        }
        document.add(&scenario, &compared);
    }
    if machines.contains(&3) && !arguments.nvml_only {
        let cold = |one: &&Contender| one.name == "balanced" && one.history == History::Cold;
        let balanced: Vec<Contender> = chosen.iter().filter(cold).copied().collect();
        let scenario = arguments.scenario(3).nvml_only();
        document.add(&scenario, &compare(&scenario, &balanced, seeds));
    }
    document.judge(&arguments.scenario(3));
    document.print_table();
    if arguments.json {
        println!("{}", serde_json::to_string(&document)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(line: &str) -> bool {
        let words = std::iter::once("evaluate").chain(line.split(' '));
        Arguments::try_parse_from(words).is_ok()
    }

    #[test]
    fn an_option_that_would_be_ignored_is_refused() {
        for line in [
            "--quick --gpus 3 --telemetry 1.2",
            "--sensitivity --seeds 5 --json",
            "--held-out --data pairs --json",
        ] {
            assert!(accepted(line), "{line}");
        }
        for line in [
            "--sensitivity --gpus 3",
            "--sensitivity --plot out",
            "--sensitivity --data pairs",
            "--held-out --sensitivity",
            "--held-out --quick",
            "--held-out --interference 2",
        ] {
            assert!(!accepted(line), "{line}");
        }
    }

    #[test]
    fn both_factors_are_of_what_was_fitted() {
        let fitted = Scenario::machine(3).machine;
        let line = ["evaluate", "--interference", "2", "--telemetry", "2"];
        let changed = Arguments::parse_from(line).scenario(3).machine;
        assert_eq!(
            changed.interference_factor,
            2.0 * fitted.interference_factor
        );
        assert_eq!(changed.telemetry_factor, 2.0 * fitted.telemetry_factor);
    }
}
