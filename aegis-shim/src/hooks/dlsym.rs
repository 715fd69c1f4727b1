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
use crate::sys::elf::{Object, each_object, object_named};

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
        // The caller's return address, behind what was pushed.
        "mov rdx, qword ptr [rsp + 24]",
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
unsafe extern "C" fn decide(handle: usize, name: *const c_char, caller: usize) -> Decision {
    let target = real_dlsym();
    let forward = Decision { target, value: 0 };
    if target == 0 || name.is_null() {
        return forward;
    }
    // SAFETY: not null, so a C string by the contract of dlsym.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    if !names::is_driver_name(bytes) && !names::is_management_name(bytes) {
        return forward;
    }
    let Some(hook) = table::find(bytes) else {
        if names::is_driver_name(bytes) {
            crate::note_unknown_lookup();
        }
        return forward;
    };
    // SAFETY: not null, as above.
    let name = unsafe { CStr::from_ptr(name) };
    let found = if handle == RTLD_NEXT {
        if !is_next_after(caller, name) {
            return forward;
        }
        next(name)
    } else {
        // An explicit handle does not depend on the caller, and for RTLD_DEFAULT this library's
        // view is the global scope as well.
        match call(target, handle, name) {
            // This library stands in front of the scope that was searched: look behind it.
            own if own == table::address(hook) => next(name),
            found => found,
        }
    };
    let value = if crate::enabled() && real::is_behind(hook, found) {
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
        real => call(real, RTLD_NEXT, name),
    }
}

/// Calls the real `dlsym` with this library as the caller.
fn call(real: usize, handle: usize, name: &CStr) -> usize {
    // SAFETY: the real dlsym's address.
    let real = unsafe { core::mem::transmute::<usize, Dlsym>(real) };
    // SAFETY: a handle from the application or a pseudo-handle, and a C string.
    unsafe { real(handle, name.as_ptr()) }
}

/// Whether a caller's `RTLD_NEXT` look-up of a hooked name would find this library's export: the
/// caller stands in front of it and nothing in between has the name. Everything in front of a
/// preloaded library is in the global scope, in link order.
fn is_next_after(caller: usize, name: &CStr) -> bool {
    let own = dlsym as *const () as usize;
    let holds = |object: &Object, address: usize| {
        let (start, end) = object.range();
        (start..end).contains(&address)
    };
    let (mut seen_caller, mut answer) = (false, false);
    each_object(|object| {
        if holds(object, own) {
            answer = seen_caller;
            return true;
        }
        if seen_caller && object.function(name).is_some() {
            return true;
        }
        seen_caller |= holds(object, caller);
        false
    });
    answer
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
