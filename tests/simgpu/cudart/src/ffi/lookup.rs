//! How the driver is found: as NVIDIA's runtime does it, which a preload library must catch.
//!
//! One `dlopen`, one `dlsym`, of `cuGetProcAddress_v2`. Through it first the empty name (a probe),
//! then the function itself in both its ABIs, then everything else by base name, version and flags.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::runtime::Stream;

type FiveArguments = extern "C" fn(*const c_char, *mut *const (), c_int, u64, *mut c_int) -> c_int;
type FourArguments = extern "C" fn(*const c_char, *mut *const (), c_int, u64) -> c_int;

/// The first version whose `cuGetProcAddress` has five arguments.
const FIVE_ARGUMENTS: c_int = 12000;
/// The version of the four-argument one.
const FOUR_ARGUMENTS: c_int = 11030;

/// The driver's function that finds functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookup {
    new: FiveArguments,
    old: FourArguments,
}

impl Lookup {
    /// Opens the driver; `None` if there is none, or one too old.
    pub(crate) fn open() -> Option<Self> {
        // SAFETY: the library's initialisers are those of a driver.
        let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
        if library.is_null() {
            return None;
        }
        // SAFETY: a handle that dlopen gave.
        let first = unsafe { libc::dlsym(library, c"cuGetProcAddress_v2".as_ptr()) };
        if first.is_null() {
            return None;
        }
        // SAFETY: by its documentation the function of that name has this signature.
        let first: FiveArguments = unsafe { std::mem::transmute::<*mut c_void, _>(first) };
        let find = |name: &CStr, version, flags| {
            let mut found = std::ptr::null();
            let mut status = 0;
            let code = first(name.as_ptr(), &mut found, version, flags, &mut status);
            (code == 0 && !found.is_null()).then_some(found)
        };
        // Its answer, success or not, means nothing to this runtime.
        let _ = find(c"", 0, 0);
        find(c"cuInit", 2000, 0)?;
        let old = find(c"cuGetProcAddress", FOUR_ARGUMENTS, 0)?;
        let new = find(c"cuGetProcAddress", FIVE_ARGUMENTS, 0)?;
        // SAFETY: the version asked for stands for this signature.
        let old: FourArguments = unsafe { std::mem::transmute::<*const (), _>(old) };
        // SAFETY: as above.
        let new: FiveArguments = unsafe { std::mem::transmute::<*const (), _>(new) };
        Some(Self { new, old })
    }

    /// A function by base name and version, in the variant for that default stream.
    pub(crate) fn find(&self, name: &CStr, version: c_int, stream: Stream) -> Option<*const ()> {
        let flags = match stream {
            Stream::Legacy => 0,
            Stream::PerThread => 2,
        };
        let mut found = std::ptr::null();
        let code = if version < FIVE_ARGUMENTS {
            (self.old)(name.as_ptr(), &mut found, version, flags)
        } else {
            (self.new)(name.as_ptr(), &mut found, version, flags, &mut 0)
        };
        (code == 0 && !found.is_null()).then_some(found)
    }

    /// What a program asks for by `cudaGetDriverEntryPoint`.
    pub(super) fn ask(
        &self,
        name: *const c_char,
        found: *mut *const (),
        version: c_int,
        flags: u64,
        status: &mut c_int,
    ) -> c_int {
        (self.new)(name, found, version, flags, status)
    }
}
