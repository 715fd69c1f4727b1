//! Options of the training kinds. Each default is the kind's preset.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::units::{parse_bytes, parse_seconds, parse_share};

/// How a multi-GPU run is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ranks {
    /// One process with one context per GPU (PyTorch's DataParallel).
    Contexts,
    /// One process per GPU, in step with each other (torchrun).
    Processes,
}

/// What SIGTERM does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnTerm {
    /// The system's default: the process dies of it.
    Die,
    /// Finish the step, say so, exit 0.
    Checkpoint,
}

/// Parameters of a training run. Sizes are per GPU: `512MiB`, `2GiB` or bytes.
#[derive(Debug, Clone, Args)]
pub struct TrainArgs {
    /// Seconds before the first GPU activity [vision 1, transformer 1.2, recommender 1.5, llm 1.5]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub startup: Option<f64>,
    /// Weights [200MiB, 820MiB, 720MiB, 2560MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub weights: Option<u64>,
    /// Gradients, from the first backward pass on [as weights; recommender 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub gradients: Option<u64>,
    /// Optimizer state, allocated only after the first step [1x, 2x, 1x, 2x weights]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub optimizer: Option<u64>,
    /// Peak of a training step's activations [1960MiB, 2200MiB, 400MiB, 3200MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub activations: Option<u64>,
    /// Peak of an evaluation step's activations [2460MiB, 2840MiB, 532MiB, 4084MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub eval_activations: Option<u64>,
    /// Epochs [2, 2, 2, 1]
    #[arg(long, value_name = "N")]
    pub epochs: Option<u32>,
    /// Training steps per epoch [60, 60, 75, 120]
    #[arg(long, value_name = "N")]
    pub steps: Option<u32>,
    /// Evaluation steps after each epoch [10, 10, 10, 12]
    #[arg(long, value_name = "N")]
    pub eval_steps: Option<u32>,
    /// Kernels in a step's forward and backward passes [16, 24, 12, 32]
    #[arg(long, value_name = "N")]
    pub kernels: Option<u32>,
    /// Mean duration of a kernel alone on the GPU, microseconds [2000, 1600, 1000, 1500]
    #[arg(long, value_name = "US")]
    pub kernel_us: Option<u64>,
    /// SM active while a kernel runs, 0 to 1 [0.62, 0.90, 0.32 (0.12 over time), 0.90]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub sm: Option<f64>,
    /// SM occupancy while a kernel runs, 0 to 1 [0.35, 0.45, 0.15, 0.40]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub occupancy: Option<f64>,
    /// DRAM active while a kernel runs, 0 to 1 [0.40, 0.45, 0.25, 0.55]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub dram: Option<f64>,
    /// Saturate the GPU: SM active 1, occupancy 0.9, DRAM 0.9
    #[arg(long, conflicts_with_all = ["sm", "occupancy", "dram"])]
    pub saturate: bool,
    /// Data loader's delay before each step, ms; makes the run loader-bound [2, 0, 20, 0]
    #[arg(long, value_name = "MS")]
    pub loader_ms: Option<u64>,
    /// A batch, copied to the GPU each step
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = parse_bytes)]
    pub batch: u64,
    /// Read the batch back and compare it every N steps (0: never); a wrong byte exits 70
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub verify_every: u64,
    /// GPUs to train on, data-parallel: devices 0 to N-1 of those visible
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub gpus: u32,
    /// Layout of a multi-GPU run
    #[arg(long, value_enum, default_value = "contexts")]
    pub ranks: Ranks,
    /// From this training step on (counted from 1), memory grows by --grow-bytes in total
    #[arg(long, value_name = "STEP", requires = "grow_bytes")]
    pub grow_at: Option<u64>,
    /// Total growth
    #[arg(long, value_name = "SIZE", requires = "grow_at", value_parser = parse_bytes)]
    pub grow_bytes: Option<u64>,
    /// Steps over which the growth is spread evenly
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub grow_steps: u64,
    /// Bytes lost in each training step
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = parse_bytes)]
    pub leak: u64,
    /// Append events to this file as JSON lines
    #[arg(long, value_name = "FILE")]
    pub progress: Option<PathBuf>,
    /// Steps between two `step` lines
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub progress_every: u64,
    /// Exit code after the last step
    #[arg(long, value_name = "CODE", default_value_t = 0)]
    pub exit_code: u8,
    /// What SIGTERM does
    #[arg(long, value_enum, default_value = "die")]
    pub on_term: OnTerm,
    /// Print the resolved parameters as JSON and exit, without touching the GPU
    #[arg(long)]
    pub print_plan: bool,
    /// This process's rank; set by the parent of `--ranks processes`
    #[arg(long, hide = true)]
    pub rank: Option<u32>,
}
