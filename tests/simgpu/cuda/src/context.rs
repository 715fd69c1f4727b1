//! Contexts: primary and created, and each thread's stack of current ones.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::code::{Code, Result};
use crate::driver::{self, Driver, lock};

/// Primary contexts have the handles `FIRST + device * STEP`, created ones follow.
const FIRST: u64 = 0xc000_0000;
const STEP: u64 = 0x100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) handle: u64,
    pub(crate) device: i32,
    /// Machine index.
    pub(crate) gpu: usize,
    pub(crate) flags: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Primary {
    references: u32,
    flags: u32,
}

pub(crate) struct Contexts {
    live: BTreeMap<u64, Context>,
    primaries: Vec<Primary>,
    next: u64,
}

thread_local! {
    static STACK: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Works on this thread's stack. While a thread ends its stack is gone: code that runs then (static
/// destructors) may still call the driver, and finds no context.
fn with_stack<R: Default>(work: impl FnOnce(&mut Vec<u64>) -> R) -> R {
    STACK
        .try_with(|stack| work(&mut stack.borrow_mut()))
        .unwrap_or_default()
}

impl Contexts {
    pub(crate) fn new(devices: usize) -> Self {
        let next = FIRST + devices as u64 * STEP;
        Self {
            live: BTreeMap::new(),
            primaries: vec![Primary::default(); devices],
            next,
        }
    }

    pub(crate) fn get(&self, handle: u64) -> Option<Context> {
        self.live.get(&handle).copied()
    }
}

/// The handle current in this thread, 0 for none; may name a destroyed context.
pub(crate) fn current_handle() -> u64 {
    with_stack(|stack| stack.last().copied().unwrap_or(0))
}

/// The context current in this thread.
pub(crate) fn current() -> Result<(&'static Driver, Context)> {
    let driver = driver::get()?;
    let context = lock(&driver.contexts)
        .get(current_handle())
        .ok_or(Code::INVALID_CONTEXT)?;
    Ok((driver, context))
}

/// The context `handle`, or the current one for 0.
pub(crate) fn named_or_current(handle: u64) -> Result<(&'static Driver, Context)> {
    if handle == 0 {
        return current();
    }
    let driver = driver::get()?;
    let context = lock(&driver.contexts)
        .get(handle)
        .ok_or(Code::INVALID_CONTEXT)?;
    Ok((driver, context))
}

/// `cuCtxSetCurrent`: replaces the top of the stack; 0 removes it.
pub(crate) fn set_current(handle: u64) -> Result<()> {
    let driver = driver::get()?;
    if handle != 0 && lock(&driver.contexts).get(handle).is_none() {
        return Err(Code::INVALID_CONTEXT);
    }
    with_stack(|stack| {
        stack.pop();
        if handle != 0 {
            stack.push(handle);
        }
    });
    Ok(())
}

/// `cuCtxPushCurrent`.
pub(crate) fn push(handle: u64) -> Result<()> {
    let driver = driver::get()?;
    lock(&driver.contexts)
        .get(handle)
        .ok_or(Code::INVALID_CONTEXT)?;
    with_stack(|stack| stack.push(handle));
    Ok(())
}

/// `cuCtxPopCurrent`.
pub(crate) fn pop() -> Result<u64> {
    driver::get()?;
    with_stack(Vec::pop).ok_or(Code::INVALID_CONTEXT)
}

/// `cuCtxCreate`: the new context becomes current.
pub(crate) fn create(device: i32, flags: u32) -> Result<u64> {
    let driver = driver::get()?;
    let gpu = driver.gpu(device)?;
    let mut contexts = lock(&driver.contexts);
    driver
        .process
        .create_context(gpu)
        .map_err(|_| Code::OUT_OF_MEMORY)?;
    let handle = contexts.next;
    contexts.next += STEP;
    contexts.live.insert(
        handle,
        Context {
            handle,
            device,
            gpu,
            flags,
        },
    );
    with_stack(|stack| stack.push(handle));
    Ok(handle)
}

/// `cuCtxDestroy`.
pub(crate) fn destroy(handle: u64) -> Result<()> {
    let driver = driver::get()?;
    let context = lock(&driver.contexts)
        .live
        .remove(&handle)
        .ok_or(Code::INVALID_CONTEXT)?;
    release(driver, context);
    with_stack(|stack| {
        if stack.last() == Some(&handle) {
            stack.pop();
        }
    });
    Ok(())
}

/// Drops what a removed context held; the last one on a GPU takes the rest along.
fn release(driver: &Driver, context: Context) {
    crate::stream::synchronise_context(driver, context.gpu);
    crate::heap::release_context(driver, context.handle);
    crate::module::release_context(driver, context.handle);
    let last = !lock(&driver.contexts)
        .live
        .values()
        .any(|c| c.gpu == context.gpu);
    if last {
        crate::pool::release_gpu(driver, context.gpu);
        driver.process.abandon(context.gpu);
        driver.process.destroy_context(context.gpu);
    }
}

fn primary_handle(device: i32) -> u64 {
    FIRST + device as u64 * STEP
}

/// `cuDevicePrimaryCtxRetain`.
pub(crate) fn retain_primary(device: i32) -> Result<u64> {
    let driver = driver::get()?;
    let gpu = driver.gpu(device)?;
    let handle = primary_handle(device);
    let mut contexts = lock(&driver.contexts);
    driver
        .process
        .create_context(gpu)
        .map_err(|_| Code::OUT_OF_MEMORY)?;
    let primary = contexts
        .primaries
        .get_mut(device as usize)
        .ok_or(Code::INVALID_DEVICE)?;
    primary.references += 1;
    let flags = primary.flags;
    contexts.live.insert(
        handle,
        Context {
            handle,
            device,
            gpu,
            flags,
        },
    );
    Ok(handle)
}

/// `cuDevicePrimaryCtxRelease` (`all` = false) and `cuDevicePrimaryCtxReset` (`all` = true).
pub(crate) fn release_primary(device: i32, all: bool) -> Result<()> {
    let driver = driver::get()?;
    driver.gpu(device)?;
    let mut contexts = lock(&driver.contexts);
    let primary = contexts
        .primaries
        .get_mut(device as usize)
        .ok_or(Code::INVALID_DEVICE)?;
    if primary.references == 0 {
        return if all {
            Ok(())
        } else {
            Err(Code::INVALID_CONTEXT)
        };
    }
    primary.references = if all { 0 } else { primary.references - 1 };
    if primary.references > 0 {
        return Ok(());
    }
    let removed = contexts.live.remove(&primary_handle(device));
    drop(contexts);
    if let Some(context) = removed {
        release(driver, context);
    }
    Ok(())
}

/// Flags and activity of a primary context.
pub(crate) fn primary_state(device: i32) -> Result<(u32, bool)> {
    let driver = driver::get()?;
    driver.gpu(device)?;
    let contexts = lock(&driver.contexts);
    let primary = contexts
        .primaries
        .get(device as usize)
        .ok_or(Code::INVALID_DEVICE)?;
    Ok((
        primary.flags,
        contexts.live.contains_key(&primary_handle(device)),
    ))
}

/// `cuDevicePrimaryCtxSetFlags`.
pub(crate) fn set_primary_flags(device: i32, flags: u32) -> Result<()> {
    let driver = driver::get()?;
    driver.gpu(device)?;
    let mut contexts = lock(&driver.contexts);
    let primary = contexts
        .primaries
        .get_mut(device as usize)
        .ok_or(Code::INVALID_DEVICE)?;
    primary.flags = flags;
    Ok(())
}
