//! The `dlsym` hook.
//!
//! `RTLD_NEXT` and `RTLD_DEFAULT` depend on the caller's return address. So the exported function
//! never calls the real one on the caller's behalf: it asks [`decide`] and, unless the answer is a
//! hook, jumps to the real `dlsym` with the caller's registers and return address in place.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicUsize, Ordering};

use shim_core::names;

use super::real;
use super::table;
use crate::sys::elf::{each_object, object_named};

type Dlsym = unsafe extern "C" fn(handle: usize, name: *const c_char) -> usize;

const RTLD_NEXT: usize = usize::MAX;

static REAL: AtomicUsize = AtomicUsize::new(0);

/// What the exported `dlsym` does, in two registers: jump to `target` unless it is 0, else return
/// `value`.
#[repr(C)]
pub(crate) struct Decision {
    target: usize,
    value: usize,
}

/// The hook.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlsym(handle: usize, name: *const c_char) -> usize {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {decide}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "mov rax, rdx",
        "ret",
        ".cfi_endproc",
        decide = sym decide,
    )
}

/// # Safety
/// `name` is what the caller passes to `dlsym`: null or a C string.
unsafe extern "C" fn decide(handle: usize, name: *const c_char) -> Decision {
    let target = real_dlsym();
    let forward = Decision { target, value: 0 };
    if target == 0 || name.is_null() || handle == RTLD_NEXT {
        return forward;
    }
    // SAFETY: not null, so a C string by the contract of dlsym.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    if !names::is_driver_name(bytes) {
        return forward;
    }
    let Some(hook) = table::find(bytes) else {
        crate::note_unknown_lookup();
        return forward;
    };
    // SAFETY: the real dlsym's address. An explicit handle does not depend on the caller, and for
    // RTLD_DEFAULT this library's view is the global scope as well.
    let call = unsafe { core::mem::transmute::<usize, Dlsym>(target) };
    // SAFETY: the caller's own arguments.
    let mut found = unsafe { call(handle, name) };
    if found == table::address(hook) {
        // This library stands in front of the scope that was searched: look behind it.
        // SAFETY: as above; the return address lies in this library, so "next" is behind it.
        found = unsafe { call(RTLD_NEXT, name) };
    }
    let value = if crate::enabled() && real::in_driver(found) && real::known(hook) == found {
        table::address(hook)
    } else {
        found
    };
    Decision { target: 0, value }
}

/// The definition of `name` that follows this library in the global scope, or 0.
pub(crate) fn next(name: &CStr) -> usize {
    match real_dlsym() {
        0 => 0,
        address => {
            // SAFETY: the real dlsym's address.
            let call = unsafe { core::mem::transmute::<usize, Dlsym>(address) };
            // SAFETY: a C string; the return address lies in this library.
            unsafe { call(RTLD_NEXT, name.as_ptr()) }
        }
    }
}

#[inline]
fn real_dlsym() -> usize {
    match REAL.load(Ordering::Relaxed) {
        0 => find_real(),
        address => address,
    }
}

/// glibc 2.34 and newer have it in libc, older ones in libdl, musl in its own libc.
#[cold]
fn find_real() -> usize {
    let own = dlsym as *const () as usize;
    let mut found = [c"libc.so.6", c"libdl.so.2"]
        .into_iter()
        .find_map(|library| object_named(library)?.function(c"dlsym"));
    if found.is_none() {
        each_object(|object| {
            found = object.function(c"dlsym").filter(|address| *address != own);
            found.is_some()
        });
    }
    let address = found.unwrap_or(0);
    REAL.store(address, Ordering::Relaxed);
    address
}
