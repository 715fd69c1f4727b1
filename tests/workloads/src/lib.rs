//! Programs that behave like training jobs on CUDA's driver API (test only; nothing here ships).
//!
//! They know nothing of AEGIS or of the simulated driver but the arguments of a timed kernel
//! ([`kernel::PTX`]): whatever they do, any CUDA program might do. See `workload --help`.

pub mod allocator;
pub mod batch;
pub mod cli;
pub mod cuda;
pub mod device;
pub mod error;
#[cfg(test)]
mod fake;
pub mod kernel;
pub mod oom;
pub mod plan;
pub mod preset;
pub mod progress;
pub mod say;
mod sys;
pub mod train;
pub mod train_args;
pub mod units;
pub mod util;
