//! `cargo xtask bench`: builds what is measured as it ships, then runs `aegis-bench`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::artifacts::{self, Profile};
use crate::command::{cargo, run as run_command};
use crate::setup;
use crate::workspace::{root, target};

/// Options of `bench`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The scheduling loop: the core's pass, submission to start, end to next start, the queue with
    /// 10,000 pending jobs, idle wake-ups
    Scheduler {
        /// Print one JSON document on standard output
        #[arg(long)]
        json: bool,
        /// Only these parts: pass, latency, scale, idle
        #[arg(long, value_delimiter = ',', value_name = "PART")]
        only: Vec<String>,
    },
    /// One mix of 20 jobs on the daemon and in replay, exclusively, with the released gate and
    /// balanced: fails if the ratios differ by more than a tenth
    Agreement {
        /// Print one JSON document on standard output
        #[arg(long)]
        json: bool,
    },
    /// The preload library: what it adds to a launch, an allocation, a memory query and a program's
    /// start; the ledger is compared with the calls that were made
    Shim {
        /// Print one JSON document on standard output
        #[arg(long)]
        json: bool,
        /// Measure another preload library in the same run; its settings are taken from the
        /// environment
        #[arg(long, value_name = "LIBRARY")]
        against: Option<PathBuf>,
    },
}

/// `cargo xtask bench`.
///
/// # Errors
/// Something did not build, or could not be measured.
pub(crate) fn run(options: &Options) -> Result<()> {
    setup::prepare(setup::Verb::Bench, true)?;
    eprintln!("bench: building optimised binaries");
    artifacts::build_all(Profile::Release)?;
    run_command(
        cargo()
            .current_dir(root())
            .args(["build", "--quiet", "--locked", "--release"])
            .args(["--package", "aegis-bench"]),
    )?;
    let program = target()
        .join(Profile::Release.directory())
        .join("aegis-bench");
    let mut command = Command::new(program);
    match &options.what {
        What::Scheduler { json, only } => {
            command.arg("scheduler");
            if *json {
                command.arg("--json");
            }
            if !only.is_empty() {
                command.arg("--only").arg(only.join(","));
            }
        }
        What::Agreement { json } => {
            command.arg("agreement");
            if *json {
                command.arg("--json");
            }
        }
        What::Shim { json, against } => {
            command.arg("shim");
            if *json {
                command.arg("--json");
            }
            if let Some(library) = against {
                command.arg("--against").arg(library);
            }
        }
    }
    run_command(&mut command)
}
