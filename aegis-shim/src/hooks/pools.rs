//! Which GPU a memory pool is on: its blocks are charged there, whatever context is current. Blocks
//! of a pool in host memory are charged nowhere.

use super::driver::SUCCESS;
use super::vmm::Properties;
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
        let pool = unsafe { *out };
        match properties.device() {
            Some(device) => learned(pool, device),
            None => {
                if let Some(state) = active() {
                    state.pools.remember(pool, HOST);
                }
            }
        }
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
