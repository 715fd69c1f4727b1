//! What programs built by nvcc call when they are loaded and unloaded.

use std::ffi::{c_char, c_void};

use crate::registry;
use crate::runtime;

#[unsafe(no_mangle)]
pub(super) extern "C" fn __cudaRegisterFatBinary(wrapper: *const c_void) -> usize {
    registry::add_binary(wrapper.expose_provenance())
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn __cudaRegisterFatBinaryEnd(_binary: usize) {}

#[unsafe(no_mangle)]
pub(super) extern "C" fn __cudaUnregisterFatBinary(binary: usize) {
    registry::remove_binary(binary);
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn __cudaInitModule(binary: usize) -> c_char {
    let loaded = runtime::context().and_then(|_| registry::library(binary));
    c_char::from(loaded.is_ok())
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn __cudaRegisterFunction(
    binary: usize,
    host: usize,
    _device: *mut c_char,
    name: *const c_char,
    _thread_limit: i32,
    _thread: *const c_void,
    _block: *const c_void,
    _block_size: *const c_void,
    _grid_size: *const c_void,
    _warp_size: *const c_void,
) {
    registry::add_symbol(binary, host, name, 0);
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn __cudaRegisterVar(
    binary: usize,
    host: usize,
    _device: *mut c_char,
    name: *const c_char,
    _external: i32,
    bytes: usize,
    _constant: i32,
    _global: i32,
) {
    registry::add_symbol(binary, host, name, bytes.max(1));
}
