//! Contexts: where the process starts, and what ends with a context.

use super::driver::{SUCCESS, primary_is_active};
use crate::memory::context_ended;
use crate::session::active;
use crate::sys::thread::Depth;

pub(super) unsafe fn init(real: unsafe extern "C" fn(u32) -> i32, flags: u32) -> i32 {
    // Registers the process: later than this the daemon would miss its first allocation.
    active();
    // SAFETY: the application's own argument.
    unsafe { real(flags) }
}

pub(super) unsafe fn destroy(real: unsafe extern "C" fn(u64) -> i32, context: u64) -> i32 {
    // SAFETY: the application's own argument.
    let call = || unsafe { real(context) };
    let Some(_depth) = Depth::enter() else {
        return call();
    };
    let status = call();
    if status == SUCCESS
        && let Some(state) = active()
    {
        context_ended(state, context);
    }
    status
}

pub(super) unsafe fn destroy_green(real: unsafe extern "C" fn(u64) -> i32, green: u64) -> i32 {
    // SAFETY: the application's own argument.
    let status = unsafe { real(green) };
    if status == SUCCESS
        && let Some(state) = active()
    {
        // The context made from it has a handle of its own, which is not known here.
        state.contexts.forget_all();
    }
    status
}

pub(super) unsafe fn retain_primary(
    real: unsafe extern "C" fn(*mut u64, i32) -> i32,
    out: *mut u64,
    device: i32,
) -> i32 {
    // SAFETY: the application's own arguments.
    let status = unsafe { real(out, device) };
    if status == SUCCESS
        && let Some(state) = active()
    {
        // SAFETY: after a success the driver has written the handle.
        state.contexts.set_primary(device, unsafe { *out });
    }
    status
}

pub(super) unsafe fn release_primary(real: unsafe extern "C" fn(i32) -> i32, device: i32) -> i32 {
    // SAFETY: the application's own argument.
    let call = || unsafe { real(device) };
    let Some(_depth) = Depth::enter() else {
        return call();
    };
    let status = call();
    // Only the last release ends the context.
    if status == SUCCESS
        && let Some(state) = active()
        && let Some(context) = state.contexts.primary(device)
        && primary_is_active(device) == Some(false)
    {
        context_ended(state, context);
    }
    status
}

pub(super) unsafe fn reset_primary(real: unsafe extern "C" fn(i32) -> i32, device: i32) -> i32 {
    // SAFETY: the application's own argument.
    let call = || unsafe { real(device) };
    let Some(_depth) = Depth::enter() else {
        return call();
    };
    let status = call();
    if status == SUCCESS
        && let Some(state) = active()
        && let Some(context) = state.contexts.primary(device)
    {
        context_ended(state, context);
    }
    status
}
