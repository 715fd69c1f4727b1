//! Pointers from C callers. By NVML's contract a pointer argument is NULL or points to what the
//! function's documentation says; that contract is the soundness of this file, and why the
//! wrappers' methods are safe to call: their values only come from C.

use std::ffi::{CStr, c_char};

use crate::code::{Code, Result};

/// A value or array to read or write; may be NULL.
#[repr(transparent)]
pub(crate) struct Ptr<T>(*mut T);

// Not derived: a pointer can be copied whatever it points to.
impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

impl<T> Ptr<T> {
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for NULL.
    pub(crate) fn set(self, value: T) -> Result<()> {
        if self.0.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        // SAFETY: not NULL, so by the API's contract room for a T. Unaligned: nobody promises more.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// The element `index` of an array.
    pub(crate) fn at(self, index: usize) -> Self {
        // Wrapping: the address is only used if the array is long enough, as the caller says.
        Self(self.0.wrapping_add(index))
    }

    /// The same place seen as another type, `bytes` further on.
    pub(crate) fn field<U>(self, bytes: usize) -> Ptr<U> {
        if self.0.is_null() {
            Ptr(std::ptr::null_mut())
        } else {
            Ptr(self.0.wrapping_byte_add(bytes).cast())
        }
    }
}

impl<T: Copy> Ptr<T> {
    /// Reads.
    pub(crate) fn get(self) -> Result<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        // SAFETY: not NULL, so by the API's contract a T.
        Ok(unsafe { self.0.read_unaligned() })
    }
}

impl Ptr<c_char> {
    /// The NUL-terminated text.
    pub(crate) fn text(self) -> Result<String> {
        if self.0.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        // SAFETY: not NULL, so by the API's contract a NUL-terminated string.
        let text = unsafe { CStr::from_ptr(self.0) };
        Ok(text.to_string_lossy().into_owned())
    }

    /// Writes text into a buffer of `length` bytes.
    ///
    /// # Errors
    /// `INSUFFICIENT_SIZE` if it does not fit with its NUL.
    pub(crate) fn set_text(self, text: &str, length: u32) -> Result<()> {
        if text.len() >= length as usize {
            return Err(Code::INSUFFICIENT_SIZE);
        }
        for (index, byte) in text.bytes().chain([0]).enumerate() {
            self.at(index).set(byte as c_char)?;
        }
        Ok(())
    }
}

/// Text as a fixed array, NUL-filled.
pub(crate) fn fixed<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    for (place, byte) in bytes.iter_mut().take(N - 1).zip(text.bytes()) {
        *place = byte;
    }
    bytes
}
