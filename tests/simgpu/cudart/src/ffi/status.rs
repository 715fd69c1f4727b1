//! Results, versions and the driver's own functions.

use std::ffi::c_char;

use super::{Out, Place};
use crate::error::{self, Error, NOT_FOUND, ok};
use crate::runtime;

unsafe extern "C" {
    /// Version of the API that this library is linked as, 1000 * major + 10 * minor. `cargo xtask`
    /// defines it beside the symbol versions.
    safe static simgpu_cudart_version: i32;
}

/// The version of the API.
pub(super) fn version() -> i32 {
    simgpu_cudart_version
}

/// `cudaDriverEntryPointQueryResult`: found, not there, too new.
const STATUS_SUCCESS: i32 = 0;
const STATUS_NOT_FOUND: i32 = 1;

fn entry_point(
    name: *const c_char,
    found: *mut *const (),
    version: i32,
    flags: u64,
    status: Out<i32>,
) -> error::Result<()> {
    let mut why = STATUS_SUCCESS;
    let code = runtime::lookup()?.ask(name, found, version, flags, &mut why);
    if code == NOT_FOUND {
        // Told by the status, or without one by NULL.
        Out(found).set(std::ptr::null())?;
        status.set_if_wanted(why.max(STATUS_NOT_FOUND));
        return Ok(());
    }
    ok(code)?;
    status.set_if_wanted(STATUS_SUCCESS);
    Ok(())
}

api! {
    bare fn cudaRuntimeGetVersion(result: Out<i32>) {
        result.set(version())
    }

    bare fn cudaDriverGetVersion(result: Place) {
        // 0 without a driver, which is no failure.
        match runtime::driver() {
            Ok(driver) => ok((driver.driver_get_version)(result)),
            Err(_) => Out::<i32>(result.cast()).set(0),
        }
    }

    bare fn cudaGetDriverEntryPoint(name: *const c_char, found: *mut *const (), flags: u64, status: Out<i32>) {
        entry_point(name, found, version(), flags, status)
    }

    bare fn cudaGetDriverEntryPoint_ptsz(name: *const c_char, found: *mut *const (), flags: u64, status: Out<i32>) {
        entry_point(name, found, version(), if flags == 0 { 2 } else { flags }, status)
    }

    bare fn cudaGetDriverEntryPointByVersion(name: *const c_char, found: *mut *const (), version: u32, flags: u64, status: Out<i32>) {
        let version = i32::try_from(version).map_err(|_| Error::INVALID_VALUE)?;
        entry_point(name, found, version, flags, status)
    }

    bare fn cudaGetDriverEntryPointByVersion_ptsz(name: *const c_char, found: *mut *const (), version: u32, flags: u64, status: Out<i32>) {
        let version = i32::try_from(version).map_err(|_| Error::INVALID_VALUE)?;
        entry_point(name, found, version, if flags == 0 { 2 } else { flags }, status)
    }

    fn cudaProfilerStart() |driver| { ok((driver.profiler_start)()) }
    fn cudaProfilerStop() |driver| { ok((driver.profiler_stop)()) }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaGetLastError() -> i32 {
    error::last(true)
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaPeekAtLastError() -> i32 {
    error::last(false)
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaGetErrorName(code: i32) -> *const c_char {
    error::name(code).as_ptr().cast()
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn cudaGetErrorString(code: i32) -> *const c_char {
    let mut text = std::ptr::null();
    if let Ok(driver) = runtime::driver() {
        // The driver's codes mean the same; NULL for what it does not know.
        let _ = (driver.get_error_string)(code, &mut text);
    }
    if text.is_null() {
        error::name(code).as_ptr().cast()
    } else {
        text
    }
}
