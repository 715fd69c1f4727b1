//! The exported functions.
//!
//! By the contract of the runtime API a pointer argument is NULL or points to what the function's
//! documentation says; most are handed on to the driver as they came.

/// Defines exported functions whose body has the driver, with a context of the thread's device
/// current. `bare` ones are called without. With a second name two are made: the second, for
/// programs built with per-thread default streams, takes stream 0 as the thread's own.
macro_rules! api {
    () => {};
    (bare fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block $($rest:tt)*) => {
        #[unsafe(no_mangle)]
        pub(super) extern "C" fn $name($($arg: $ty),*) -> i32 {
            crate::error::note(|| $body)
        }
        api! { $($rest)* }
    };
    (fn $name:ident($($arg:ident: $ty:ty),* $(,)?) |$driver:ident| $body:block $($rest:tt)*) => {
        api! {
            bare fn $name($($arg: $ty),*) {
                let $driver = crate::runtime::context()?;
                $body
            }
            $($rest)*
        }
    };
    (fn $name:ident, $variant:ident($($arg:ident: $ty:ty),* $(,)?) |$driver:ident| $body:block $($rest:tt)*) => {
        api! {
            fn $name($($arg: $ty),*) |$driver| $body
            bare fn $variant($($arg: $ty),*) {
                let $driver = crate::runtime::context_for(crate::runtime::Stream::PerThread)?;
                $body
            }
            $($rest)*
        }
    };
}

mod array;
mod copy;
mod device;
pub(crate) mod driver;
mod event;
mod fill;
mod graph;
mod ipc;
mod launch;
pub(crate) mod lookup;
mod memory;
mod pool;
mod properties;
mod register;
mod status;
mod stream;

use crate::error::{Error, Result};

/// A pointer that is handed on as it came.
type Place = *mut std::ffi::c_void;
/// A handle or device address.
type Handle = u64;

/// Where this runtime itself writes a result; may be NULL.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Writes the result.
    ///
    /// # Errors
    /// It is NULL.
    pub fn set(self, value: T) -> Result<()> {
        if self.0.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        // SAFETY: not NULL, so by the API's contract room for a T. Unaligned: nobody promises more.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes the result if it is wanted.
    pub fn set_if_wanted(self, value: T) {
        // Only NULL fails.
        let _ = self.set(value);
    }
}

/// What the caller describes; may be NULL.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// The value.
    ///
    /// # Errors
    /// It is NULL.
    pub fn get(self) -> Result<T> {
        if self.0.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        // SAFETY: not NULL, so by the API's contract a T.
        Ok(unsafe { self.0.read_unaligned() })
    }
}
