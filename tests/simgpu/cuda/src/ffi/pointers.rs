//! Pointers from C callers. By the contract of the driver API a pointer argument is NULL or points
//! to what the function's documentation says; that contract is the soundness of this file, and why
//! the wrappers' methods are safe to call: their values only come from C.

use std::ffi::{CStr, c_char, c_void};

use simgpu_core::kernel::{Cost, TIMED_BUFFER_BYTES};

use crate::code::{Code, Result};

/// Where a result goes; may be NULL.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    pub(crate) const fn null() -> Self {
        Self(std::ptr::null_mut())
    }

    /// Writes the result.
    ///
    /// # Errors
    /// `INVALID_VALUE` for NULL.
    pub(crate) fn set(self, value: T) -> Result<()> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not NULL, so by the API's contract room for a T. Unaligned: nobody promises more.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes the result unless the caller does not want it.
    pub(crate) fn set_if_wanted(self, value: T) {
        // Only NULL fails.
        let _ = self.set(value);
    }

    /// The same place seen as another type.
    pub(crate) fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }

    /// Fails for NULL, before anything is done.
    pub(crate) fn check(self) -> Result<()> {
        if self.0.is_null() {
            Err(Code::INVALID_VALUE)
        } else {
            Ok(())
        }
    }

    /// Writes up to `count` results to an array.
    pub(crate) fn set_all(self, values: impl IntoIterator<Item = T>, count: usize) -> Result<()> {
        self.check()?;
        for (index, value) in values.into_iter().take(count).enumerate() {
            // SAFETY: the caller says that the array has `count` elements.
            let place = unsafe { self.0.add(index) };
            Self(place).set(value)?;
        }
        Ok(())
    }
}

impl Out<c_char> {
    /// Writes text into a buffer of `length` bytes, cut to fit, NUL-terminated.
    pub(crate) fn set_text(self, text: &str, length: i32) -> Result<()> {
        let room = usize::try_from(length).ok().and_then(|l| l.checked_sub(1));
        let room = room.ok_or(Code::INVALID_VALUE)?;
        let bytes = text.bytes().take(room).chain([0]);
        self.set_all(bytes.map(|b| b as c_char), room + 1)
    }
}

/// A value or array given; may be NULL.
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

// Not derived: a pointer can be copied whatever it points to.
impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T: Copy> In<T> {
    /// The value.
    pub(crate) fn get(self) -> Result<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not NULL, so by the API's contract a T.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// The values of an array of `count`.
    pub(crate) fn all(self, count: usize) -> Result<Vec<T>> {
        (0..count).map(|index| self.at(index)).collect()
    }

    /// One value of an array.
    pub(crate) fn at(self, index: usize) -> Result<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller says that the array is long enough.
        Self(unsafe { self.0.add(index) }).get()
    }
}

impl<T> In<T> {
    pub(crate) const fn null() -> Self {
        Self(std::ptr::null())
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn cast<U>(self) -> In<U> {
        In(self.0.cast())
    }
}

/// A NUL-terminated string; may be NULL.
pub(crate) type Text = In<c_char>;

impl Text {
    /// The text.
    pub(crate) fn text(self) -> Result<String> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not NULL, so by the API's contract a NUL-terminated string.
        let text = unsafe { CStr::from_ptr(self.0) };
        Ok(text.to_string_lossy().into_owned())
    }
}

/// `kernelParams` and `extra` of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Arguments {
    pub(crate) params: In<In<c_void>>,
    pub(crate) extra: In<In<c_void>>,
}

/// `CU_LAUNCH_PARAM_BUFFER_POINTER` and `CU_LAUNCH_PARAM_BUFFER_SIZE`.
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;

impl Arguments {
    /// The cost in the arguments of `sim_timed`.
    pub(crate) fn timed_cost(self) -> Option<Cost> {
        if !self.params.is_null() {
            let at = |i| self.params.at(i).ok();
            let duration = at(0)?.cast::<u64>().get().ok()?;
            let share = |i| at(i)?.cast::<u32>().get().ok();
            return Some(Cost::new(duration, share(1)?, share(2)?, share(3)?));
        }
        self.buffer()
            .and_then(In::<[u8; TIMED_BUFFER_BYTES]>::timed_cost)
    }

    fn buffer(self) -> Option<In<[u8; TIMED_BUFFER_BYTES]>> {
        let (mut buffer, mut size) = (None, 0);
        // The list is short; a broken one ends here.
        for pair in 0..4 {
            let key = self.extra.at(2 * pair).ok()?.0.addr();
            let value = if key == 0 {
                break;
            } else {
                self.extra.at(2 * pair + 1).ok()?
            };
            match key {
                BUFFER_POINTER => buffer = Some(value.cast()),
                BUFFER_SIZE => size = value.cast::<usize>().get().ok()?,
                _ => return None,
            }
        }
        buffer.filter(|_| size >= TIMED_BUFFER_BYTES)
    }
}

impl In<[u8; TIMED_BUFFER_BYTES]> {
    fn timed_cost(self) -> Option<Cost> {
        let bytes = self.get().ok()?;
        let duration = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
        let share = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        Some(Cost::new(duration, share(8)?, share(12)?, share(16)?))
    }
}
