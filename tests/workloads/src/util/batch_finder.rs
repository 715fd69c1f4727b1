//! `batch-finder`: runs out of memory on purpose, recovers, and goes on. Such a program has not
//! failed, and killing or retrying it for its refused allocations would be wrong.

use crate::allocator::CachingAllocator;
use crate::cuda::{Driver, DriverSource, Gpu};
use crate::device::Device;
use crate::error::WorkloadError;
use crate::kernel::{KernelDemand, train_kernel};
use crate::say::say;
use crate::units::parse_bytes;

/// Options of `batch-finder`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Activations per sample
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = parse_bytes)]
    sample: u64,
    /// Largest batch to try
    #[arg(long, value_name = "N", default_value_t = 1 << 16, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    most: u64,
    /// Training steps with the batch found
    #[arg(long, value_name = "N", default_value_t = 20)]
    steps: u64,
}

/// Prints `batch N ok|OOM, recovering` for each try, `FOUND N`, and exits 0; exits 1 with the
/// framework's text if not even a batch of 1 fits.
pub(super) fn run(args: &Args, source: &DriverSource) -> Result<u8, WorkloadError> {
    let driver = Driver::load(source)?;
    let mut gpu = Gpu::open(&driver, 0)?;
    let mut allocator = CachingAllocator::new();
    let mut batch = 1;
    let mut found = None;
    while batch <= args.most {
        match step(&mut gpu, &mut allocator, args, batch) {
            Ok(()) => say(&format!("batch {batch} ok"))?,
            Err(error @ WorkloadError::OutOfMemory(_)) if found.is_none() => return Err(error),
            Err(WorkloadError::OutOfMemory(_)) => {
                say(&format!("batch {batch} OOM, recovering"))?;
                allocator.empty_cache(&mut gpu)?;
                break;
            }
            Err(error) => return Err(error),
        }
        found = Some(batch);
        batch *= 2;
    }
    let found = found.unwrap_or(1);
    say(&format!("FOUND {found}"))?;
    for _ in 0..args.steps {
        step(&mut gpu, &mut allocator, args, found)?;
    }
    say("done")?;
    Ok(0)
}

/// One training step of `batch` samples; on failure nothing stays allocated.
fn step(
    gpu: &mut Gpu,
    allocator: &mut CachingAllocator,
    args: &Args,
    batch: u64,
) -> Result<(), WorkloadError> {
    let activations = allocator.alloc(gpu, args.sample.saturating_mul(batch))?;
    for index in 0..8 {
        gpu.launch(&train_kernel(&DEMAND, index))?;
    }
    gpu.synchronize()?;
    allocator.free(activations)
}

const DEMAND: KernelDemand = KernelDemand {
    duration_ns: 2_000_000,
    sm_active: 600,
    sm_occupancy: 300,
    dram_active: 300,
};
