//! `cuGetProcAddress`: the real one chooses, and its choice is replaced by the hook of the same
//! function.
//!
//! Version and stream are the driver's choice; the pointer it returns tells which function it
//! chose. That also answers the look-up of `cuGetProcAddress` by itself with the hook of the right
//! signature.

use core::ffi::{CStr, c_char, c_int};

use shim_core::names::route;

use super::driver::SUCCESS;
use super::real;
use super::table::{self, ROUTES, address};
use crate::session::active;

/// The signature before CUDA 12.
pub(super) unsafe fn before_12(
    real: unsafe extern "C" fn(*const c_char, *mut usize, c_int, u64) -> i32,
    name: *const c_char,
    out: *mut usize,
    version: c_int,
    flags: u64,
) -> i32 {
    // SAFETY: the application's own arguments.
    let status = unsafe { real(name, out, version, flags) };
    // SAFETY: on success the driver has read `name` and written `out`.
    unsafe { substitute(status, name, out, version, flags) };
    status
}

/// The signature since CUDA 12.
pub(super) unsafe fn since_12(
    real: unsafe extern "C" fn(*const c_char, *mut usize, c_int, u64, *mut c_int) -> i32,
    name: *const c_char,
    out: *mut usize,
    version: c_int,
    flags: u64,
    found: *mut c_int,
) -> i32 {
    // SAFETY: the application's own arguments.
    let status = unsafe { real(name, out, version, flags, found) };
    // SAFETY: on success the driver has read `name` and written `out`.
    unsafe { substitute(status, name, out, version, flags) };
    status
}

/// # Safety
/// If `status` is success: `name` is null or a C string, `out` null or writable.
unsafe fn substitute(
    status: i32,
    name: *const c_char,
    out: *mut usize,
    version: c_int,
    flags: u64,
) {
    if status != SUCCESS || name.is_null() || out.is_null() || active().is_none() {
        return;
    }
    // SAFETY: a C string, by the contract above.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    // SAFETY: written by the driver.
    let function = unsafe { *out };
    if name.is_empty() || function == 0 {
        return;
    }
    match hook_for(name, function, version, flags) {
        // SAFETY: writable, by the contract above.
        Some(hook) => unsafe { *out = address(hook) },
        None => crate::note_unknown_lookup(),
    }
}

fn hook_for(name: &[u8], function: usize, version: c_int, flags: u64) -> Option<usize> {
    // Programs look up hundreds of names at their start, most of them not hooked. Every base name of
    // the table is one of its symbols too.
    table::find(name)?;
    let is_named = |hook: usize| {
        ROUTES
            .get(hook)
            .is_some_and(|row| row.base.as_bytes() == name || row.symbol.as_bytes() == name)
    };
    let by_pointer =
        (0..ROUTES.len()).find(|hook| real::known(*hook) == function && is_named(*hook));
    if by_pointer.is_some() {
        return by_pointer;
    }
    let hook = route(&ROUTES, name, version, flags)?;
    // A function exported under a name that is not hooked may have another signature.
    if real::driver()?.exports(function) {
        return None;
    }
    real::note(hook, function);
    Some(hook)
}
