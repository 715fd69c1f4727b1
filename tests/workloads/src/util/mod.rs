//! Small programs for end-to-end tests: each does one thing that a memory arbiter must survive.

mod alloc_once;
mod batch_finder;
mod control;
mod fork_worker;
mod hold;
mod phases;
mod race;
mod spawn_tree;
mod spin;

use clap::Subcommand;

use crate::cuda::DriverSource;
use crate::error::WorkloadError;

/// A utility.
#[derive(Debug, Subcommand)]
pub enum Utility {
    /// Allocate SIZE, print `READY <pid> <bytes>`, hold until SIGTERM or end of stdin
    #[command(hide = true)]
    Hold(hold::Args),
    /// On `go` allocate chunks until refused and print `GOT <bytes>`; on `free` give them back
    #[command(hide = true)]
    Race(race::Args),
    /// One allocation: print `OK` and exit 0, or `OOM` and exit 1
    #[command(hide = true)]
    AllocOnce(alloc_once::Args),
    /// Start descendants that try to outlive the job; print `TREE <pid>...`, then wait
    #[command(hide = true)]
    SpawnTree(spawn_tree::Args),
    /// Run until SIGKILL: SIGTERM, SIGINT and SIGHUP do nothing
    #[command(hide = true)]
    Spin(spin::Args),
    /// Double the batch until memory runs out, recover, train with the largest that fits, exit 0
    #[command(hide = true)]
    BatchFinder(batch_finder::Args),
    /// Train eagerly, by graph launches, evaluate, train with twice the batch; exit 0
    #[command(hide = true)]
    Phases(phases::Args),
    /// Use CUDA in a forked child, or fork a loader from a process that uses CUDA
    #[command(hide = true)]
    ForkWorker(fork_worker::Args),
}

/// Runs a utility. Returns the exit code.
///
/// # Errors
/// As the utility says.
pub fn run(utility: Utility, source: &DriverSource) -> Result<u8, WorkloadError> {
    match utility {
        Utility::Hold(args) => hold::run(&args, source),
        Utility::Race(args) => race::run(&args, source),
        Utility::AllocOnce(args) => alloc_once::run(&args, source),
        Utility::SpawnTree(args) => spawn_tree::run(&args, source),
        Utility::Spin(args) => spin::run(&args, source),
        Utility::BatchFinder(args) => batch_finder::run(&args, source),
        Utility::Phases(args) => phases::run(&args, source),
        Utility::ForkWorker(args) => fork_worker::run(&args, source),
    }
}
