//! `hold`: a process that has memory and does nothing with it.

use crate::cuda::{Driver, DriverSource, Gpu};
use crate::device::{AllocError, Device, DeviceMemory};
use crate::error::WorkloadError;
use crate::kernel::KernelDemand;
use crate::say::say;
use crate::units::parse_bytes;

use super::control;

/// Options of `hold`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Bytes to hold
    #[arg(value_name = "SIZE", value_parser = parse_bytes)]
    bytes: u64,
    /// Number of allocations
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pieces: u64,
    /// GPU ordinal
    #[arg(long, value_name = "N", default_value_t = 0)]
    gpu: u32,
    /// Launch one kernel before READY, so that the process counts as active
    #[arg(long)]
    launch: bool,
}

/// Prints `READY <pid> <bytes>` when the memory is there, `OOM` and exit code 1 if there is none.
pub(super) fn run(args: &Args, source: &DriverSource) -> Result<u8, WorkloadError> {
    let driver = Driver::load(source)?;
    let mut gpu = Gpu::open(&driver, args.gpu)?;
    let orders = control::listen()?;
    for piece in 0..args.pieces {
        // The first piece takes the rest of the division.
        let rest = if piece == 0 {
            args.bytes % args.pieces
        } else {
            0
        };
        match gpu.alloc(args.bytes / args.pieces + rest) {
            Ok(_) => {}
            Err(AllocError::OutOfMemory) => {
                say("OOM")?;
                return Ok(1);
            }
            Err(AllocError::Other(error)) => return Err(error),
        }
    }
    if args.launch {
        gpu.launch(&ONE_MS)?;
        gpu.synchronize()?;
    }
    say(&format!("READY {} {}", std::process::id(), args.bytes))?;
    control::wait_for_quit(&orders);
    Ok(0)
}

/// A short kernel that nobody else notices.
const ONE_MS: KernelDemand = KernelDemand {
    duration_ns: 1_000_000,
    sm_active: 100,
    sm_occupancy: 50,
    dram_active: 50,
};
