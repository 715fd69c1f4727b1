//! `aegis-bench scheduler`.

use anyhow::{Context, Result};
use clap::Args;

use crate::host::{self, Host};
use crate::latency;
use crate::report::{self, Figure};
use crate::stats::{Stats, ms};
use crate::{idle, pass, scale};

/// Options of `scheduler`.
#[derive(Args)]
pub(crate) struct Options {
    /// Print one JSON document on standard output
    #[arg(long)]
    json: bool,
    /// Only these parts
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Pass,
    Latency,
    Scale,
    Idle,
}

/// Measures and prints.
///
/// # Errors
/// Something is not built, the daemon did not start, or did not do what is measured.
pub(crate) fn run(options: &Options) -> Result<()> {
    let wanted = |part| options.only.is_empty() || options.only.contains(&part);
    let before = host::load_average()?;
    let mut figures = Vec::new();
    if wanted(Part::Pass) {
        eprintln!("bench: the core's pass, 64 GPUs, 10,000 pending jobs");
        figures.extend(passes()?);
    }
    if wanted(Part::Latency) {
        eprintln!("bench: from submission to start, from end to next start");
        figures.extend(latency::measure()?);
    }
    if wanted(Part::Scale) {
        eprintln!("bench: submitting, listing, memory with 10,000 pending jobs");
        figures.extend(scale::measure()?);
    }
    if wanted(Part::Idle) {
        eprintln!("bench: wake-ups of an idle daemon");
        figures.extend(idle::measure()?);
    }
    let fsyncs = host::fsyncs(&std::env::temp_dir(), 100)?;
    let fsyncs = Stats::of(fsyncs.into_iter().map(ms).collect()).context("no fsync")?;
    let host = Host::after(before, Some(fsyncs.median))?;
    report::print("simulated driver", &figures, &host, options.json)
}

fn passes() -> Result<Vec<Figure>> {
    let passes = pass::measure()?;
    Ok(vec![
        Figure::new(
            "pass_10k_pending_ms",
            "one step of the core, 10,000 pending jobs, 64 GPUs: the worst of the next three",
            Some(5.0),
            passes.worst(),
        ),
        Figure::new(
            "pass_submitted_ms",
            "a submission that finds no room",
            None,
            passes.submitted,
        ),
        Figure::new(
            "pass_sampled_ms",
            "a sample that changes nothing",
            None,
            passes.sampled,
        ),
        Figure::new(
            "pass_ended_ms",
            "a job ends and another takes its GPU",
            None,
            passes.ended,
        ),
    ])
}
