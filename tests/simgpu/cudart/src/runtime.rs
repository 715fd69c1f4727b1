//! The driver as this process's runtime knows it, and which device a thread uses.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::error::{Error, Result, ok};
use crate::ffi::driver::Driver;
use crate::ffi::lookup::Lookup;

/// Stream 0 as a caller means it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// The legacy default stream.
    Legacy,
    /// The thread's own: programs built with `--default-stream per-thread`.
    PerThread,
}

/// As many devices as a context is kept for.
const DEVICES: usize = 64;

struct Runtime {
    lookup: Lookup,
    legacy: Driver,
    per_thread: Driver,
    /// Primary contexts retained, by device; 0 = not.
    retained: [AtomicU64; DEVICES],
}

static RUNTIME: OnceLock<Result<Runtime>> = OnceLock::new();

thread_local! {
    static DEVICE: Cell<i32> = const { Cell::new(0) };
}

fn runtime() -> Result<&'static Runtime> {
    let made = RUNTIME.get_or_init(|| {
        let lookup = Lookup::open().ok_or(Error::INSUFFICIENT_DRIVER)?;
        // Both are resolved in every process, whichever it uses.
        let legacy = Driver::resolve(&lookup, Stream::Legacy);
        let per_thread = Driver::resolve(&lookup, Stream::PerThread);
        ok((legacy.init)(0))?;
        Ok(Runtime {
            lookup,
            legacy,
            per_thread,
            retained: [const { AtomicU64::new(0) }; DEVICES],
        })
    });
    made.as_ref().map_err(|error| *error)
}

/// The initialised driver, its functions taking the legacy default stream.
///
/// # Errors
/// There is no driver, or it has no device.
pub fn driver() -> Result<&'static Driver> {
    Ok(&runtime()?.legacy)
}

/// Finds a function of the driver by name and version.
pub(crate) fn lookup() -> Result<&'static Lookup> {
    Ok(&runtime()?.lookup)
}

/// The driver with a context of the thread's device current.
///
/// # Errors
/// There is no driver or device, or the context could not be made.
pub fn context() -> Result<&'static Driver> {
    context_for(Stream::Legacy)
}

/// [`context`] for callers with that default stream.
pub(crate) fn context_for(stream: Stream) -> Result<&'static Driver> {
    let runtime = runtime()?;
    let mut current = 0;
    ok((runtime.legacy.ctx_get_current)(&mut current))?;
    if current == 0 {
        use_device(DEVICE.get())?;
    }
    Ok(match stream {
        Stream::Legacy => &runtime.legacy,
        Stream::PerThread => &runtime.per_thread,
    })
}

/// Makes the primary context of a device current in the thread.
pub(crate) fn use_device(device: i32) -> Result<()> {
    let runtime = runtime()?;
    let driver = &runtime.legacy;
    let slot = usize::try_from(device)
        .ok()
        .and_then(|index| runtime.retained.get(index))
        .ok_or(Error::INVALID_DEVICE)?;
    let mut context = slot.load(Relaxed);
    if context == 0 {
        let mut handle = 0;
        ok((driver.device_get)(&mut handle, device))?;
        ok((driver.primary_ctx_retain)(&mut context, handle))?;
        // Two threads at once: the context is the same, and one reference is enough.
        if slot.compare_exchange(0, context, Relaxed, Relaxed).is_err() {
            ok((driver.primary_ctx_release)(handle))?;
        }
    }
    ok((driver.ctx_set_current)(context))?;
    DEVICE.set(device);
    Ok(())
}

/// The thread's device; makes no context.
pub(crate) fn device() -> Result<i32> {
    let driver = driver()?;
    let mut current = 0;
    ok((driver.ctx_get_current)(&mut current))?;
    if current == 0 {
        return Ok(DEVICE.get());
    }
    let mut device = 0;
    ok((driver.ctx_get_device)(&mut device))?;
    Ok(device)
}

/// Destroys what the process has on the thread's device.
pub(crate) fn reset() -> Result<()> {
    let runtime = runtime()?;
    let device = device()?;
    let slot = usize::try_from(device)
        .ok()
        .and_then(|index| runtime.retained.get(index))
        .ok_or(Error::INVALID_DEVICE)?;
    slot.store(0, Relaxed);
    ok((runtime.legacy.primary_ctx_reset)(device))?;
    ok((runtime.legacy.ctx_set_current)(0))
}
