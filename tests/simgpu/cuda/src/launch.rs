//! Launches and copies: they take GPU time, or with `zero_duration` nothing.

use std::sync::atomic::Ordering::Relaxed;

use simgpu_core::kernel::{Cost, CostRule};

use crate::code::{Code, Result};
use crate::context;
use crate::driver::{self, Driver, lock};
use crate::graph::Work;
use crate::module::{self, Function};
use crate::stream::{self, CAPTURES, Stream};

/// Grid, block and where the arguments of `sim_timed` are.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
}

/// Launches a function. `arguments` reads the cost from the arguments of `sim_timed`.
///
/// No lock is taken on this path, and with `zero_duration` no clock is read: callers measure their
/// own cost per launch against it.
#[inline]
pub(crate) fn launch(
    handle: u64,
    shape: Shape,
    stream: u64,
    arguments: impl FnOnce() -> Option<Cost>,
) -> Result<()> {
    let driver = driver::get()?;
    let function = module::function(handle)?;
    if driver.zero && CAPTURES.load(Relaxed) == 0 && driver.launch_faults.load(Relaxed) == 0 {
        driver.counters.launches.fetch_add(1, Relaxed);
        return Ok(());
    }
    launch_timed(driver, function, shape, stream, arguments)
}

fn launch_timed(
    driver: &'static Driver,
    function: &Function,
    shape: Shape,
    handle: u64,
    arguments: impl FnOnce() -> Option<Cost>,
) -> Result<()> {
    let cost = cost_of(function, shape, arguments)?;
    let gpu = match function.gpu {
        Some(gpu) => gpu,
        None => {
            module::touch_library(function.module)?;
            context::current()?.1.gpu
        }
    };
    let stream = stream::on(handle, gpu)?;
    let capture = stream.capture.load(Relaxed);
    if capture != 0 {
        return lock(&driver.graphs).capture(capture, Work::Kernel(cost));
    }
    driver.counters.launches.fetch_add(1, Relaxed);
    if driver.launch_faults.load(Relaxed) != 0
        && let Some(code) = driver.process.launch_fault(gpu)
    {
        return Err(Code(code as i32));
    }
    enqueue(driver, stream, &cost);
    Ok(())
}

/// The cost of one launch; `arguments` is asked only for `sim_timed`.
pub(crate) fn cost_of(
    function: &Function,
    shape: Shape,
    arguments: impl FnOnce() -> Option<Cost>,
) -> Result<Cost> {
    let product = |d: [u32; 3]| d.iter().fold(1u64, |p, n| p.saturating_mul(u64::from(*n)));
    let (blocks, threads) = (product(shape.grid), product(shape.block));
    if blocks == 0 || threads == 0 || threads > 1024 {
        return Err(Code::INVALID_VALUE);
    }
    match function.rule {
        CostRule::Arguments => arguments().ok_or(Code::INVALID_VALUE),
        CostRule::Fixed(cost) => Ok(cost),
        CostRule::Geometry => Ok(Cost::from_geometry(blocks, threads)),
    }
}

/// Queues GPU time in a stream.
pub(crate) fn enqueue(driver: &Driver, stream: &Stream, cost: &Cost) {
    if driver.zero {
        return;
    }
    stream.extend(driver.process.push(stream.gpu(), cost));
}

/// Time of a copy over PCIe 4.0 x16 (about 25 GB/s in practice) or within the device.
pub(crate) fn copy_cost(bytes: u64, within_device: bool) -> Cost {
    let (latency_ns, bytes_per_ns, dram) = if within_device {
        (2_000, 600, 900)
    } else {
        (5_000, 25, 30)
    };
    Cost {
        duration_ns: latency_ns + bytes / bytes_per_ns,
        sm_active: 0,
        sm_occupancy: 0,
        dram_active: dram,
    }
}
