//! Default parameters of the four kinds of training.
//!
//! Sizes and times are scaled so that a run takes 5 to 10 s alone; SM activity follows the published
//! solo measurements on an A100 (ResNet-50 .65, BERT and GPT-2 .9, DLRM .12), the proportions of
//! weights, gradients and optimizer state follow from SGD with momentum (1 : 1 : 1), Adam (1 : 1 : 2)
//! and a sparse embedding's row-wise optimizer (small gradients).

use clap::ValueEnum;

use crate::units::MIB;

/// A kind of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Convolutional network: moderate SM activity, large activations, SGD.
    Vision,
    /// BERT-like encoder: GPU-bound, Adam.
    Transformer,
    /// DLRM-like: bound by its data loader, low SM activity, large embeddings.
    Recommender,
    /// GPT-like decoder: GPU-bound, memory mostly weights and Adam state.
    Llm,
}

/// The parameters that differ between kinds. Memory is per GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preset {
    /// Seconds without GPU activity: imports, data set indexing.
    pub startup_s: f64,
    /// Weights, bytes.
    pub weights: u64,
    /// Gradients, bytes; appear in the first backward pass.
    pub gradients: u64,
    /// Optimizer state as a multiple of the weights; appears after the first step.
    pub optimizer_per_weight: u64,
    /// Peak of a training step's activations, bytes.
    pub activations: u64,
    /// Peak of an evaluation step's activations, bytes.
    pub eval_activations: u64,
    /// Epochs.
    pub epochs: u32,
    /// Training steps in an epoch.
    pub steps: u32,
    /// Evaluation steps after an epoch.
    pub eval_steps: u32,
    /// Kernels in a step's forward and backward passes.
    pub kernels: u32,
    /// Mean duration of a kernel alone on the GPU, microseconds.
    pub kernel_us: u64,
    /// SM active, 0 to 1.
    pub sm: f64,
    /// SM occupancy, 0 to 1.
    pub occupancy: f64,
    /// DRAM active, 0 to 1.
    pub dram: f64,
    /// Time the data loader keeps the GPU waiting before each step, ms.
    pub loader_ms: u64,
}

impl Kind {
    /// The name in the progress file and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vision => "vision",
            Self::Transformer => "transformer",
            Self::Recommender => "recommender",
            Self::Llm => "llm",
        }
    }

    /// The kind's defaults.
    #[must_use]
    pub fn preset(self) -> Preset {
        match self {
            // Peak 3 GiB: 3 x 200 MiB + 2,472 MiB at evaluation.
            Self::Vision => Preset {
                startup_s: 1.0,
                weights: 200 * MIB,
                gradients: 200 * MIB,
                optimizer_per_weight: 1,
                activations: 1960 * MIB,
                eval_activations: 2460 * MIB,
                epochs: 2,
                steps: 60,
                eval_steps: 10,
                kernels: 16,
                kernel_us: 2_000,
                sm: 0.62,
                occupancy: 0.35,
                dram: 0.40,
                loader_ms: 2,
            },
            // Peak 6 GiB: 4 x 820 MiB + 2,852 MiB.
            Self::Transformer => Preset {
                startup_s: 1.2,
                weights: 820 * MIB,
                gradients: 820 * MIB,
                optimizer_per_weight: 2,
                activations: 2200 * MIB,
                eval_activations: 2840 * MIB,
                epochs: 2,
                steps: 60,
                eval_steps: 10,
                kernels: 24,
                kernel_us: 1_600,
                sm: 0.90,
                occupancy: 0.45,
                dram: 0.45,
                loader_ms: 0,
            },
            // Peak 2 GiB: 2 x 720 MiB + 64 MiB + 536 MiB.
            Self::Recommender => Preset {
                startup_s: 1.5,
                weights: 720 * MIB,
                gradients: 64 * MIB,
                optimizer_per_weight: 1,
                activations: 400 * MIB,
                eval_activations: 532 * MIB,
                epochs: 2,
                steps: 75,
                eval_steps: 10,
                kernels: 12,
                kernel_us: 1_000,
                sm: 0.32,
                occupancy: 0.15,
                dram: 0.25,
                loader_ms: 20,
            },
            // Peak 14 GiB: 4 x 2,560 MiB + 4,096 MiB.
            Self::Llm => Preset {
                startup_s: 1.5,
                weights: 2560 * MIB,
                gradients: 2560 * MIB,
                optimizer_per_weight: 2,
                activations: 3200 * MIB,
                eval_activations: 4084 * MIB,
                epochs: 1,
                steps: 120,
                eval_steps: 12,
                kernels: 32,
                kernel_us: 1_500,
                sm: 0.90,
                occupancy: 0.40,
                dram: 0.55,
                loader_ms: 0,
            },
        }
    }
}
