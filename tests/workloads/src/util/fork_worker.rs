//! `fork-worker`: CUDA around a `fork` without `exec`, as data loaders and pre-forking servers do.

use std::io::Read;
use std::os::unix::net::UnixStream;

use clap::ValueEnum;
use rustix::process::Pid;

use crate::cuda::{Driver, DriverSource, Gpu};
use crate::device::{AllocError, Device, DeviceMemory};
use crate::error::WorkloadError;
use crate::kernel::KernelDemand;
use crate::say::say;
use crate::sys;
use crate::units::parse_bytes;

/// Which process uses CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum User {
    /// The child; the parent has not touched CUDA.
    Child,
    /// The parent, before and after the fork; the child is a loader that lives as long.
    Parent,
    /// Both, the parent first: the child's calls must fail (CUDA does not survive a fork).
    Both,
}

/// Options of `fork-worker`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which process uses CUDA
    #[arg(long, value_enum, default_value = "child")]
    user: User,
    /// Memory to allocate where CUDA is used
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_bytes)]
    bytes: u64,
    /// Kernels to launch there, 5 ms each
    #[arg(long, value_name = "N", default_value_t = 20)]
    launches: u32,
}

/// Prints `PARENT <pid>`, `CHILD <pid>` and `WORKED <pid>` for each process that used CUDA; exits
/// with the child's code if it is not 0. With `--user both` the child prints `REFUSED <pid>`.
pub(super) fn run(args: &Args, source: &DriverSource) -> Result<u8, WorkloadError> {
    say(&format!("PARENT {}", std::process::id()))?;
    match args.user {
        User::Child => match fork()? {
            None => work(args, source),
            Some(child) => wait(child),
        },
        User::Parent => {
            let (ours, theirs) =
                UnixStream::pair().map_err(|e| WorkloadError::io("loader's socket", e))?;
            let mut gpu = prepare(args, source)?;
            match fork()? {
                None => {
                    drop(ours);
                    load_until_closed(theirs)
                }
                Some(child) => {
                    drop(theirs);
                    launch(args, &mut gpu)?;
                    drop(ours);
                    wait(child)
                }
            }
        }
        User::Both => {
            let mut gpu = prepare(args, source)?;
            match fork()? {
                None => match gpu.alloc(args.bytes) {
                    Ok(_) => Ok(1),
                    Err(_) => say(&format!("REFUSED {}", std::process::id())).map(|()| 0),
                },
                Some(child) => {
                    let code = wait(child)?;
                    launch(args, &mut gpu)?;
                    Ok(code)
                }
            }
        }
    }
}

/// Forks; the child says so.
fn fork() -> Result<Option<Pid>, WorkloadError> {
    let child = sys::fork().map_err(|e| WorkloadError::io("fork", e))?;
    if child.is_none() {
        say(&format!("CHILD {}", std::process::id()))?;
    }
    Ok(child)
}

fn wait(child: Pid) -> Result<u8, WorkloadError> {
    sys::wait(child).map_err(|e| WorkloadError::io("forked child", e))
}

/// A loader's life: until the parent closes the socket.
fn load_until_closed(mut own: UnixStream) -> Result<u8, WorkloadError> {
    let mut rest = Vec::new();
    own.read_to_end(&mut rest)
        .map_err(|e| WorkloadError::io("loader's socket", e))?;
    Ok(0)
}

fn work(args: &Args, source: &DriverSource) -> Result<u8, WorkloadError> {
    let mut gpu = prepare(args, source)?;
    launch(args, &mut gpu)?;
    Ok(0)
}

fn prepare(args: &Args, source: &DriverSource) -> Result<Gpu, WorkloadError> {
    let driver = Driver::load(source)?;
    let mut gpu = Gpu::open(&driver, 0)?;
    match gpu.alloc(args.bytes) {
        Ok(_) => Ok(gpu),
        Err(AllocError::Other(error)) => Err(error),
        Err(AllocError::OutOfMemory) => Err(WorkloadError::NoMemory { call: "cuMemAlloc" }),
    }
}

fn launch(args: &Args, gpu: &mut Gpu) -> Result<(), WorkloadError> {
    for _ in 0..args.launches {
        gpu.launch(&FIVE_MS)?;
    }
    gpu.synchronize()?;
    say(&format!("WORKED {}", std::process::id()))
}

const FIVE_MS: KernelDemand = KernelDemand {
    duration_ns: 5_000_000,
    sm_active: 500,
    sm_occupancy: 250,
    dram_active: 200,
};
