//! Which GPU a memory pool is on: its blocks are charged there, whatever context is current.

use super::driver::SUCCESS;
use super::vmm::Properties;
use crate::gpus;
use crate::session::active;

pub(super) unsafe fn create(
    real: unsafe extern "C" fn(*mut u64, *const Properties) -> i32,
    out: *mut u64,
    properties: *const Properties,
) -> i32 {
    // SAFETY: the application's own arguments.
    let status = unsafe { real(out, properties) };
    // SAFETY: null or the application's structure.
    let device = unsafe { properties.as_ref() }.and_then(Properties::device);
    if status == SUCCESS
        && let Some(device) = device
    {
        // SAFETY: after a success the driver has written the handle.
        learned(unsafe { *out }, device);
    }
    status
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
        learned(unsafe { *out }, device);
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

fn learned(pool: u64, device: i32) {
    if let Some(state) = active()
        && let Some(gpu) = gpus::of_device(state, device)
    {
        state.pools.remember(pool, gpu);
    }
}
