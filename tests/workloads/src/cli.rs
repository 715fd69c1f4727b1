//! The command line.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};

use crate::cuda::ffi::{AllocApi, Api};
use crate::cuda::{Backend, DriverSource, Route};
use crate::error::WorkloadError;
use crate::preset::Kind;
use crate::train;
use crate::train_args::TrainArgs;
use crate::util;

const EXAMPLES: &str = "\
Examples:
  workload vision --progress /tmp/p.jsonl
  workload llm --weights 1GiB --steps 30
  workload transformer --gpus 2 --ranks processes
  workload transformer --saturate
  workload vision --grow-at 40 --grow-bytes 12GiB     memory really runs out later
  workload --route getprocaddress --backend vmm recommender
  workload alloc-once 2GiB

For end-to-end tests (`workload NAME --help`): hold, race, alloc-once, spawn-tree, spin, batch-finder,
fork-worker, phases.

Exit codes: 0 or --exit-code at the end; 1 out of memory; 2 bad options; 69 no driver or a driver
error; 70 wrong data read back from the GPU; 74 a file or pipe failed; 127 no driver, --route link.";

/// Programs that behave like training jobs on CUDA's driver API.
///
/// Kernels only take time; nothing is learned. Memory, launches, copies and their order are those of
/// a training framework with a caching allocator. Defaults are in brackets, for vision, transformer,
/// recommender and llm in this order; each run takes 5 to 10 s alone on the simulated driver and
/// peaks at 3, 6, 2 and 14 GiB per GPU.
#[derive(Debug, Parser)]
#[command(name = "workload", version, after_help = EXAMPLES)]
struct Cli {
    /// How the driver's functions are found
    #[arg(long, global = true, value_enum, default_value = "dlsym")]
    route: Route,
    /// Which family of driver calls allocates GPU memory
    #[arg(long, global = true, value_enum, default_value = "native")]
    backend: Backend,
    #[command(subcommand)]
    kind: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    /// Convolutional network: moderate SM activity, large activations, SGD
    Vision(TrainArgs),
    /// BERT-like encoder: GPU-bound, Adam
    Transformer(TrainArgs),
    /// DLRM-like: bound by its data loader, low SM activity, large embeddings
    Recommender(TrainArgs),
    /// GPT-like decoder: GPU-bound, memory mostly weights and Adam state
    Llm(TrainArgs),
    #[command(flatten)]
    Utility(util::Utility),
}

/// Parses the command line, runs, and maps the outcome to an exit code. `linked` are the tables of a
/// program that is linked to the driver.
#[must_use]
pub fn main(linked: Option<(Api, AllocApi)>) -> ExitCode {
    let cli = Cli::parse();
    match run(cli, linked) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(cli: Cli, linked: Option<(Api, AllocApi)>) -> Result<u8, WorkloadError> {
    if cli.route == Route::Link && linked.is_none() {
        return Err(become_linked());
    }
    let source = DriverSource {
        linked,
        route: cli.route,
        backend: cli.backend,
    };
    match cli.kind {
        Subject::Vision(args) => train::run(Kind::Vision, &args, &source),
        Subject::Transformer(args) => train::run(Kind::Transformer, &args, &source),
        Subject::Recommender(args) => train::run(Kind::Recommender, &args, &source),
        Subject::Llm(args) => train::run(Kind::Llm, &args, &source),
        Subject::Utility(utility) => util::run(utility, &source),
    }
}

/// Replaces this process by `workload-linked`, which lies next to it. Returns only on failure.
fn become_linked() -> WorkloadError {
    match std::env::current_exe() {
        Ok(own) => {
            let linked = own.with_file_name("workload-linked");
            let error = Command::new(&linked)
                .args(std::env::args_os().skip(1))
                .exec();
            WorkloadError::io(format!("--route link: {}", linked.display()), error)
        }
        Err(error) => WorkloadError::io("own program", error),
    }
}
