//! `spin`: a process that only SIGKILL ends.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::park;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cuda::{Driver, DriverSource, Gpu};
use crate::device::{AllocError, Device, DeviceMemory};
use crate::error::WorkloadError;
use crate::kernel::KernelDemand;
use crate::say::say;
use crate::units::parse_bytes;

/// Options of `spin`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Hold this much GPU memory meanwhile and keep the GPU busy (without it: no GPU use)
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    gpu_bytes: Option<u64>,
}

/// Prints `READY <pid>` and never returns unless the GPU fails.
pub(super) fn run(args: &Args, source: &DriverSource) -> Result<u8, WorkloadError> {
    ignore_signals()?;
    let Some(bytes) = args.gpu_bytes else {
        say(&format!("READY {}", std::process::id()))?;
        loop {
            park();
        }
    };
    let driver = Driver::load(source)?;
    let mut gpu = Gpu::open(&driver, 0)?;
    match gpu.alloc(bytes) {
        Ok(_) => {}
        Err(AllocError::OutOfMemory) => {
            say("OOM")?;
            return Ok(1);
        }
        Err(AllocError::Other(error)) => return Err(error),
    }
    say(&format!("READY {}", std::process::id()))?;
    loop {
        gpu.launch(&BUSY)?;
        gpu.synchronize()?;
    }
}

/// Makes SIGTERM, SIGINT and SIGHUP do nothing.
pub(super) fn ignore_signals() -> Result<(), WorkloadError> {
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        // A handler that sets a flag nobody looks at.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
            .map_err(|e| WorkloadError::io("signal handler", e))?;
    }
    Ok(())
}

const BUSY: KernelDemand = KernelDemand {
    duration_ns: 5_000_000,
    sm_active: 300,
    sm_occupancy: 150,
    dram_active: 100,
};
