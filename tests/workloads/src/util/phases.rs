//! `phases`: one process that does what training scripts do one after the other, so that launches
//! per second and per step change while nobody disturbs it.

use std::time::{Duration, Instant};

use crate::cuda::{Driver, DriverSource, Gpu, Graph};
use crate::device::Device;
use crate::error::WorkloadError;
use crate::kernel::{KernelDemand, eval_kernel, optimizer_kernel, train_kernel};
use crate::say::say;

/// Options of `phases`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Seconds that each phase takes
    #[arg(long, value_name = "SECONDS", default_value_t = 8)]
    seconds: u64,
}

/// Kernels of a step.
const KERNELS: u32 = 12;
/// A kernel of a step with the first batch size.
const SINGLE: KernelDemand = KernelDemand {
    duration_ns: 800_000,
    sm_active: 300,
    sm_occupancy: 150,
    dram_active: 100,
};
/// With twice the batch: twice the blocks, and almost twice the time.
const DOUBLE: KernelDemand = KernelDemand {
    duration_ns: 1_500_000,
    sm_active: 600,
    sm_occupancy: 300,
    dram_active: 200,
};

/// Prints the name of each phase as it begins, and at last `DONE`.
pub(super) fn run(args: &Args, source: &DriverSource) -> Result<u8, WorkloadError> {
    let driver = Driver::load(source)?;
    let mut gpu = Gpu::open(&driver, 0)?;
    let mut graph: Option<Graph> = None;
    for phase in ["EAGER", "GRAPH", "EVALUATION", "DOUBLE"] {
        say(phase)?;
        let until = Instant::now() + Duration::from_secs(args.seconds);
        while Instant::now() < until {
            match phase {
                "EAGER" => train(&mut gpu, &SINGLE)?,
                "GRAPH" => {
                    let recorded = match graph {
                        Some(recorded) => recorded,
                        None => gpu.record(|gpu| train(gpu, &SINGLE))?,
                    };
                    graph = Some(recorded);
                    gpu.replay(recorded)?;
                }
                "EVALUATION" => {
                    for index in 0..KERNELS {
                        gpu.launch(&eval_kernel(&SINGLE, index))?;
                    }
                }
                _ => train(&mut gpu, &DOUBLE)?,
            }
            gpu.synchronize()?;
        }
    }
    say("DONE")?;
    Ok(0)
}

fn train(gpu: &mut Gpu, demand: &KernelDemand) -> Result<(), WorkloadError> {
    for index in 0..KERNELS {
        gpu.launch(&train_kernel(demand, index))?;
    }
    gpu.launch(&optimizer_kernel(demand))
}
