//! Streams: a fixed table of atomics, because launches look here and must take no lock.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use simgpu_core::layout::MAX_GPUS;

use crate::code::{Code, Result};
use crate::context::{self, Context};
use crate::driver::{self, Driver};

const SLOTS: usize = 4096;
const FIRST: u64 = 0x5000_0000;
const STEP: u64 = 0x40;

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`.
pub(crate) const LEGACY: u64 = 1;
pub(crate) const PER_THREAD: u64 = 2;

/// Captures that are open in the process: launches look for one only if there is any.
pub(crate) static CAPTURES: AtomicU32 = AtomicU32::new(0);

/// Host functions of all streams that have not returned yet.
pub(crate) static HOST_FUNCTIONS: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Stream {
    live: AtomicU32,
    gpu: AtomicU32,
    context: AtomicU64,
    /// Queue position at which the stream's work so far is done.
    pub(crate) tail: AtomicU64,
    /// The capture it takes part in, 0 = none.
    pub(crate) capture: AtomicU64,
    /// Host functions that have not returned yet.
    pub(crate) host_functions: AtomicU32,
    priority: AtomicI32,
    flags: AtomicU32,
}

static TABLE: [Stream; SLOTS] = [const {
    Stream {
        live: AtomicU32::new(0),
        gpu: AtomicU32::new(0),
        context: AtomicU64::new(0),
        tail: AtomicU64::new(0),
        capture: AtomicU64::new(0),
        host_functions: AtomicU32::new(0),
        priority: AtomicI32::new(0),
        flags: AtomicU32::new(0),
    }
}; SLOTS];

impl Stream {
    pub(crate) fn gpu(&self) -> usize {
        self.gpu.load(Relaxed) as usize
    }

    pub(crate) fn priority(&self) -> i32 {
        self.priority.load(Relaxed)
    }

    pub(crate) fn flags(&self) -> u32 {
        self.flags.load(Relaxed)
    }

    pub(crate) fn context(&self) -> u64 {
        self.context.load(Relaxed)
    }

    /// Notes that the stream's work now ends at `position`.
    pub(crate) fn extend(&self, position: u64) {
        self.tail.fetch_max(position, AcqRel);
    }

    pub(crate) fn is_idle(&self, driver: &Driver) -> bool {
        let done = driver.zero || driver.process.is_done(self.gpu(), self.tail.load(Acquire));
        done && self.host_functions.load(Acquire) == 0
    }

    pub(crate) fn wait(&self, driver: &Driver) {
        if !driver.zero {
            driver.process.wait(self.gpu(), self.tail.load(Acquire));
        }
        crate::host::wait_for(|| self.host_functions.load(Acquire) == 0);
    }
}

/// The stream of a handle; `gpu` is where a default stream is meant.
pub(crate) fn on(handle: u64, gpu: usize) -> Result<&'static Stream> {
    match handle {
        // The default streams of a GPU; the per-thread ones are taken together.
        0 | LEGACY => default_stream(gpu, gpu),
        PER_THREAD => default_stream(gpu, MAX_GPUS + gpu),
        _ => {
            let index = handle
                .checked_sub(FIRST)
                .filter(|o| o % STEP == 0)
                .map(|o| (o / STEP) as usize);
            let stream = index
                .and_then(|i| TABLE.get(i))
                .ok_or(Code::INVALID_HANDLE)?;
            if stream.live.load(Acquire) == 0 {
                Err(Code::INVALID_HANDLE)
            } else {
                Ok(stream)
            }
        }
    }
}

fn default_stream(gpu: usize, index: usize) -> Result<&'static Stream> {
    let stream = TABLE.get(index).ok_or(Code::INVALID_CONTEXT)?;
    stream.gpu.store(gpu as u32, Relaxed);
    Ok(stream)
}

/// The stream of a handle, default streams being those of the current context.
pub(crate) fn get(handle: u64) -> Result<(&'static Driver, &'static Stream)> {
    if handle <= PER_THREAD {
        let (driver, context) = context::current()?;
        return Ok((driver, on(handle, context.gpu)?));
    }
    Ok((driver::get()?, on(handle, 0)?))
}

/// `cuStreamCreateWithPriority`.
pub(crate) fn create(context: &Context, flags: u32, priority: i32) -> Result<u64> {
    for (index, stream) in TABLE.iter().enumerate().skip(2 * MAX_GPUS) {
        if stream.live.compare_exchange(0, 1, AcqRel, Relaxed).is_ok() {
            stream.gpu.store(context.gpu as u32, Relaxed);
            stream.context.store(context.handle, Relaxed);
            stream.tail.store(0, Relaxed);
            stream.capture.store(0, Relaxed);
            stream.priority.store(priority.clamp(-5, 0), Relaxed);
            stream.flags.store(flags, Relaxed);
            return Ok(FIRST + index as u64 * STEP);
        }
    }
    Err(Code::OUT_OF_MEMORY)
}

/// `cuStreamDestroy`: queued work still completes.
pub(crate) fn destroy(handle: u64) -> Result<()> {
    if handle <= PER_THREAD {
        return Err(Code::INVALID_HANDLE);
    }
    on(handle, 0)?.live.store(0, Release);
    Ok(())
}

/// Waits for all work of the process on a GPU.
pub(crate) fn synchronise_context(driver: &Driver, gpu: usize) {
    if !driver.zero {
        driver.process.wait(gpu, driver.process.tail(gpu));
    }
    if HOST_FUNCTIONS.load(Acquire) == 0 {
        return;
    }
    let of_gpu = TABLE.iter().filter(|s| s.gpu() == gpu);
    for stream in of_gpu {
        crate::host::wait_for(|| stream.host_functions.load(Acquire) == 0);
    }
}

/// Ends a capture in all streams that take part.
pub(crate) fn end_capture(capture: u64) {
    for stream in &TABLE {
        let _ = stream.capture.compare_exchange(capture, 0, AcqRel, Relaxed);
    }
}

/// Whether a stream of a GPU takes part in a capture.
pub(crate) fn is_capturing_on(gpu: usize) -> bool {
    TABLE
        .iter()
        .any(|s| s.gpu() == gpu && s.capture.load(Relaxed) != 0)
}
