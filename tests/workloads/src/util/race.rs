//! `race`: takes all memory it can get, on command, again and again.

use std::sync::mpsc::{Receiver, TryRecvError};

use crate::cuda::{Driver, DriverSource, Gpu};
use crate::device::{AllocError, DeviceMemory, DevicePtr};
use crate::error::WorkloadError;
use crate::say::say;
use crate::units::parse_bytes;

use super::control::{self, Order};

/// Options of `race`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Bytes of each allocation
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_bytes)]
    chunk: u64,
    /// GPU ordinal
    #[arg(long, value_name = "N", default_value_t = 0)]
    gpu: u32,
    /// Start at once instead of waiting for `go`
    #[arg(long)]
    go: bool,
    /// After a refusal try again until the next order comes
    #[arg(long)]
    persist: bool,
}

/// Prints `READY <pid>` before each round and `GOT <bytes>` after it. Orders on stdin: `go`
/// allocates, `free` gives everything back, `quit`, end of stdin or SIGTERM ends.
pub(super) fn run(args: &Args, source: &DriverSource) -> Result<u8, WorkloadError> {
    let driver = Driver::load(source)?;
    let mut gpu = Gpu::open(&driver, args.gpu)?;
    let orders = control::listen()?;
    let mut held = Vec::new();
    let mut next = args.go.then(|| Order::Line("go".to_owned()));
    say(&ready())?;
    loop {
        let order = match next.take() {
            Some(order) => order,
            None => orders.recv().unwrap_or(Order::Quit),
        };
        match order {
            Order::Line(line) if line == "go" => {
                next = grab(args, &mut gpu, &mut held, &orders)?;
                say(&format!("GOT {}", args.chunk * held.len() as u64))?;
            }
            Order::Line(line) if line == "free" => {
                for ptr in held.drain(..) {
                    gpu.free(ptr)?;
                }
                say(&ready())?;
            }
            Order::Line(line) if line == "quit" => return Ok(0),
            Order::Line(line) => say(&format!("UNKNOWN {line}"))?,
            Order::Quit => return Ok(0),
        }
    }
}

/// Allocates until refused, or with `--persist` until an order arrives, which is returned.
fn grab(
    args: &Args,
    gpu: &mut Gpu,
    held: &mut Vec<DevicePtr>,
    orders: &Receiver<Order>,
) -> Result<Option<Order>, WorkloadError> {
    loop {
        match gpu.alloc(args.chunk) {
            Ok(ptr) => held.push(ptr),
            Err(AllocError::OutOfMemory) if args.persist => {}
            Err(AllocError::OutOfMemory) => return Ok(None),
            Err(AllocError::Other(error)) => return Err(error),
        }
        if !args.persist {
            continue;
        }
        match orders.try_recv() {
            Ok(order) => return Ok(Some(order)),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(Some(Order::Quit)),
        }
    }
}

fn ready() -> String {
    format!("READY {}", std::process::id())
}
