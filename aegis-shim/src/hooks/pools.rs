//! Which GPU a memory pool is on: its blocks are charged there, whatever context is current. Blocks
//! of a pool in host memory are charged nowhere.

use super::driver::SUCCESS;
use super::vmm::{Location, Properties};
use crate::gpus;
use crate::session::active;
use crate::sys::state::State;

/// Stands for a pool in host memory where a pool's GPU is remembered.
const HOST: usize = u32::MAX as usize;

pub(super) unsafe fn create(
    real: unsafe extern "C" fn(*mut u64, *const Properties) -> i32,
    out: *mut u64,
    properties: *const Properties,
) -> i32 {
    // SAFETY: the application's own arguments.
    let status = unsafe { real(out, properties) };
    // SAFETY: null or the application's structure.
    let properties = unsafe { properties.as_ref() };
    if status == SUCCESS
        && let Some(properties) = properties
    {
        // SAFETY: after a success the driver has written the handle.
        learned(unsafe { *out }, properties.device());
    }
    status
}

pub(super) unsafe fn of_location(
    real: unsafe extern "C" fn(*mut u64, *const Location, i32) -> i32,
    out: *mut u64,
    location: *const Location,
    kind: i32,
) -> i32 {
    // SAFETY: the application's own arguments.
    let status = unsafe { real(out, location, kind) };
    // SAFETY: null or the application's structure.
    let location = unsafe { location.as_ref() };
    if status == SUCCESS
        && let Some(location) = location
    {
        // SAFETY: after a success the driver has written the handle.
        learned(unsafe { *out }, location.device());
    }
    status
}

/// Whether a pool hands out host memory, which no GPU's limit concerns.
pub(super) fn is_host(state: &State, pool: u64) -> bool {
    state.pools.gpu(pool) == Some(HOST)
}

pub(super) unsafe fn of_device(
    real: unsafe extern "C" fn(*mut u64, i32) -> i32,
    out: *mut u64,
    device: i32,
) -> i32 {
    // SAFETY: the application's own arguments.
    let status = unsafe { real(out, device) };
    if status == SUCCESS {
        // SAFETY: after a success the driver has written the handle.
        learned(unsafe { *out }, Some(device));
    }
    status
}

pub(super) unsafe fn destroy(real: unsafe extern "C" fn(u64) -> i32, pool: u64) -> i32 {
    // SAFETY: the application's own argument.
    let status = unsafe { real(pool) };
    if status == SUCCESS
        && let Some(state) = active()
    {
        state.pools.forget(pool);
    }
    status
}

/// `device`: `None` for host memory.
fn learned(pool: u64, device: Option<i32>) {
    let Some(state) = active() else { return };
    let gpu = match device {
        None => Some(HOST),
        Some(device) => gpus::of_device(state, device),
    };
    if let Some(gpu) = gpu {
        state.pools.remember(pool, gpu);
    }
}
