//! `cargo xtask demo`: a dozen training jobs on two simulated GPUs, three times: under AEGIS, each
//! alone, and shared without AEGIS. Then a mix that must not be shared.
//!
//! Everything it says is counted from what the jobs wrote themselves (step counts) and from the
//! simulated driver (who held and launched what), never from the daemon's belief.

mod count;
mod mix;
mod naive;
mod shared;
mod summary;
mod table;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use e2e::{GIB, Setup, World};

use crate::artifacts::{self, Profile};
use crate::setup;
use mix::Mix;
use shared::Mode;
use summary::{Saturating, Summary};

/// Memory of each simulated GPU.
const GPU_BYTES: u64 = 24 * GIB;
/// Simulated GPUs.
const GPUS: usize = 2;

/// Options of `demo`.
#[derive(Args)]
pub(crate) struct Options {
    /// Write the figures to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Keep going if a figure misses its target (they are printed either way)
    #[arg(long)]
    no_targets: bool,
}

/// `cargo xtask demo`.
///
/// # Errors
/// Something is missing or did not build, or a figure misses its target.
pub(crate) fn run(options: &Options) -> Result<()> {
    setup::prepare(setup::Verb::Demo, true)?;
    println!("demo: building");
    artifacts::build_all(Profile::Debug)?;
    let start = Instant::now();
    println!(
        "demo: {GPUS} simulated GPUs of {} GiB, simulated driver; kernels only take time",
        GPU_BYTES / GIB
    );
    let jobs = Mix::training();

    println!("\ndemo: 1. under AEGIS: {} jobs share the GPUs", jobs.len());
    let world = world()?;
    let shared = shared::run(&world, &jobs, Mode::Shared)?;
    let shared_counts = count::managed(&world, &jobs, &shared)?;
    drop(world);

    println!("\ndemo: 2. the same jobs, each alone on its GPUs (--exclusive)");
    let world = self::world()?;
    let exclusive = shared::run(&world, &jobs, Mode::Exclusive)?;
    let exclusive_counts = count::managed(&world, &jobs, &exclusive)?;
    drop(world);

    println!("\ndemo: 3. the same jobs all at once without AEGIS, round-robin over the GPUs");
    let world = prepared()?;
    let naive_failures = naive::run(&world, &jobs)?;
    drop(world);

    let busy = Mix::saturating();
    println!(
        "\ndemo: 4. {} jobs that saturate a GPU: sharing is refused",
        busy.len()
    );
    let world = self::world()?;
    let refused = shared::run(&world, &busy, Mode::Shared)?;
    let refused_counts = count::managed(&world, &busy, &refused)?;
    drop(world);
    println!("\ndemo: 5. the same, each alone on its GPU");
    let world = self::world()?;
    let alone = shared::run(&world, &busy, Mode::Exclusive)?;
    let alone_counts = count::managed(&world, &busy, &alone)?;
    drop(world);

    let saturating = Saturating::new(&refused_counts, &alone_counts, refused.refusal);
    let summary = Summary::new(
        &shared_counts,
        &exclusive_counts,
        naive_failures,
        saturating,
    );
    summary.print(start.elapsed());
    if let Some(path) = &options.json {
        summary.write(path)?;
        println!("demo: figures written to {}", path.display());
    }
    let missed = summary.missed();
    for target in &missed {
        println!("demo: MISSED {target}");
    }
    if !missed.is_empty() && !options.no_targets {
        bail!("{} of the demo's targets were missed", missed.len());
    }
    Ok(())
}

/// A private daemon on a fresh machine.
fn world() -> Result<World> {
    World::start(configuration())
}

/// A fresh machine without a daemon.
fn prepared() -> Result<World> {
    World::prepare(configuration())
}

/// Windows scaled to jobs that take seconds instead of hours; every other threshold is the default.
fn configuration() -> Setup {
    let mut setup = Setup::gpus(GPUS, GPU_BYTES)
        .key("scheduler.observe_min", "\"400ms\"")
        .key("scheduler.observe_max", "\"3s\"")
        .key("scheduler.plateau", "\"400ms\"")
        .key("scheduler.gate_window", "4")
        .key("scheduler.grow_wait", "\"2s\"")
        .key("jobs.grace", "\"500ms\"")
        .key("daemon.log_level", "\"info\"");
    setup.show_log = false;
    setup
}
