//! Events: a queue position, and when it was reached.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use simgpu_core::now_ns;

use crate::code::{Code, Result};
use crate::driver::{Driver, lock};
use crate::stream::Stream;

const FIRST: u64 = 0x6000_0000;
const STEP: u64 = 0x10;
const DISABLE_TIMING: u32 = 2;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    flags: u32,
    recorded: Option<Recorded>,
}

#[derive(Debug, Clone, Copy)]
struct Recorded {
    gpu: usize,
    position: u64,
    /// Set once it is known.
    reached_ns: Option<u64>,
    /// The capture in which it was recorded, 0 = none.
    capture: u64,
}

#[derive(Default)]
pub(crate) struct Events {
    live: BTreeMap<u64, Event>,
    free: Vec<u64>,
}

pub(crate) fn create(driver: &Driver, flags: u32) -> u64 {
    let mut events = lock(&driver.events);
    let handle = events
        .free
        .pop()
        .unwrap_or(FIRST + events.live.len() as u64 * STEP);
    events.live.insert(
        handle,
        Event {
            flags,
            recorded: None,
        },
    );
    handle
}

pub(crate) fn destroy(driver: &Driver, handle: u64) -> Result<()> {
    let mut events = lock(&driver.events);
    events.live.remove(&handle).ok_or(Code::INVALID_HANDLE)?;
    events.free.push(handle);
    Ok(())
}

fn get(driver: &Driver, handle: u64) -> Result<Event> {
    lock(&driver.events)
        .live
        .get(&handle)
        .copied()
        .ok_or(Code::INVALID_HANDLE)
}

/// `cuEventRecord`.
pub(crate) fn record(driver: &Driver, handle: u64, stream: &Stream) -> Result<()> {
    let (gpu, position) = (stream.gpu(), stream.tail.load(Acquire));
    let done = driver.zero || driver.process.is_done(gpu, position);
    let recorded = Recorded {
        gpu,
        position,
        reached_ns: done.then(now_ns),
        capture: stream.capture.load(Relaxed),
    };
    let mut events = lock(&driver.events);
    events
        .live
        .get_mut(&handle)
        .ok_or(Code::INVALID_HANDLE)?
        .recorded = Some(recorded);
    Ok(())
}

/// Whether the work before the event is done; an event never recorded counts as done.
pub(crate) fn is_done(driver: &Driver, handle: u64) -> Result<bool> {
    let event = get(driver, handle)?;
    Ok(event.recorded.is_none_or(|r| {
        driver.zero || r.reached_ns.is_some() || driver.process.is_done(r.gpu, r.position)
    }))
}

/// `cuEventSynchronize`.
pub(crate) fn wait(driver: &Driver, handle: u64) -> Result<()> {
    let Some(recorded) = get(driver, handle)?.recorded else {
        return Ok(());
    };
    if !driver.zero && recorded.reached_ns.is_none() {
        driver.process.wait(recorded.gpu, recorded.position);
    }
    crate::pool::synchronised(driver, recorded.gpu);
    Ok(())
}

/// `cuStreamWaitEvent`: the queue of a process is in order, so there is nothing to wait for on the
/// same GPU; across GPUs the wait happens here. A captured event draws the stream into the capture.
pub(crate) fn wait_in_stream(driver: &Driver, stream: &Stream, handle: u64) -> Result<()> {
    let Some(recorded) = get(driver, handle)?.recorded else {
        return Ok(());
    };
    if recorded.capture != 0 {
        stream.capture.store(recorded.capture, Relaxed);
    } else if recorded.gpu == stream.gpu() {
        stream.extend(recorded.position);
    } else if !driver.zero {
        driver.process.wait(recorded.gpu, recorded.position);
    }
    Ok(())
}

fn reached(driver: &Driver, handle: u64) -> Result<u64> {
    let event = get(driver, handle)?;
    let recorded = event.recorded.filter(|_| event.flags & DISABLE_TIMING == 0);
    let mut recorded = recorded.ok_or(Code::INVALID_HANDLE)?;
    if let Some(time) = recorded.reached_ns {
        return Ok(time);
    }
    if !driver.process.is_done(recorded.gpu, recorded.position) {
        return Err(Code::NOT_READY);
    }
    let time = driver.process.time_of(recorded.gpu, recorded.position);
    recorded.reached_ns = Some(time);
    if let Some(event) = lock(&driver.events).live.get_mut(&handle) {
        event.recorded = Some(recorded);
    }
    Ok(time)
}

/// `cuEventElapsedTime`, ms.
pub(crate) fn elapsed(driver: &Driver, start: u64, end: u64) -> Result<f32> {
    let (start, end) = (reached(driver, start)?, reached(driver, end)?);
    Ok(((end as f64 - start as f64) / 1e6) as f32)
}
