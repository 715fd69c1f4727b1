//! `alloc-once`: the answer to one request.

use crate::cuda::{Driver, DriverSource, Gpu};
use crate::device::{AllocError, DeviceMemory};
use crate::error::WorkloadError;
use crate::say::say;
use crate::units::parse_bytes;

/// Options of `alloc-once`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Bytes to ask for
    #[arg(value_name = "SIZE", value_parser = parse_bytes)]
    bytes: u64,
    /// GPU ordinal
    #[arg(long, value_name = "N", default_value_t = 0)]
    gpu: u32,
}

/// Prints `OK` or `OOM`; exit code 0 or 1.
pub(super) fn run(args: &Args, source: &DriverSource) -> Result<u8, WorkloadError> {
    let driver = Driver::load(source)?;
    let mut gpu = Gpu::open(&driver, args.gpu)?;
    match gpu.alloc(args.bytes) {
        Ok(_) => {
            say("OK")?;
            Ok(0)
        }
        Err(AllocError::OutOfMemory) => {
            say("OOM")?;
            Ok(1)
        }
        Err(AllocError::Other(error)) => Err(error),
    }
}
