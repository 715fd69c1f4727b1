//! The environment variables that the keeper sets.

use core::ffi::{CStr, c_char};

#[link(name = "c")]
unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
}

/// Calls `use_value` with a variable's value, if it is set.
pub(crate) fn with<T>(name: &str, use_value: impl FnOnce(&[u8]) -> T) -> Option<T> {
    /// Longer than any of the names, with a terminating NUL.
    const NAME_BYTES: usize = 64;
    let mut buffer = [0; NAME_BYTES];
    buffer
        .get_mut(..name.len())?
        .copy_from_slice(name.as_bytes());
    let name = CStr::from_bytes_until_nul(&buffer).ok()?;
    // SAFETY: a C string.
    let value = unsafe { getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: a C string of the environment, used before this function returns.
    let value = unsafe { CStr::from_ptr(value) };
    Some(use_value(value.to_bytes()))
}
