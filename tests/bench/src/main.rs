//! `aegis-bench`: what AEGIS costs, measured. Run it through `cargo xtask bench`, which builds
//! what it needs.
//!
//! ```text
//!   pass      the scheduler core alone, in this process: 64 GPUs, 10,000 pending jobs
//!   latency   submission to first instruction, end to next start, against a bare fork and exec
//!   scale     submitting, listing and memory with 10,000 pending jobs
//!   idle      wake-ups per second of a daemon with nothing to do
//!   agreement one mix of jobs on the daemon and in replay
//!   shim      what the preload library adds to driver calls and to a program's start
//! ```
//!
//! Everything but `pass` and `shim` runs the real daemon and command line on the simulated driver. Figures are
//! medians; a table goes to standard error, one JSON document to standard output.

mod agreement;
mod client;
mod fleet;
mod host;
mod idle;
mod latency;
mod pass;
mod report;
mod scale;
mod scheduler;
mod shim;
mod stats;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "aegis-bench", about = "Measures AEGIS on the simulated driver")]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The scheduling loop, from a client's request to a job's first instruction
    Scheduler(scheduler::Options),
    /// Daemon and replay give the same ratios for one mix of jobs
    Agreement(agreement::Options),
    /// The preload library: what it adds to launches, allocations, memory queries and start-up
    Shim(shim::Options),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().what {
        What::Scheduler(options) => scheduler::run(&options),
        What::Agreement(options) => agreement::run(&options),
        What::Shim(options) => shim::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("aegis-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
