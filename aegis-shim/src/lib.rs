//! `libaegis_shim.so`: preloaded into the processes of a job, it accounts their GPU memory, counts
//! their launches, and answers "out of memory" in the driver's place when the job's lease says so.
//!
//! It is loaded into every process of a job, shells and compilers included. So it has no
//! constructors, threads, signal handlers or output, needs nothing but an old libc, and does
//! nothing before the first driver call. Without a daemon the process behaves as without it.
#![no_std]

mod admit;
mod gpus;
mod hooks;
mod memory;
mod session;
mod sys;

use core::sync::atomic::Ordering;

use crate::sys::state;

/// Whether look-ups answer with hooks: the environment asks for them, and no attempt to register
/// has failed.
fn enabled() -> bool {
    match state::state() {
        None => false,
        Some(state) => match state.phase.load(Ordering::Acquire) {
            state::ACTIVE => true,
            state::OFF => false,
            _ => session::wanted(),
        },
    }
}

/// Counts a look-up of a driver function that is not hooked, if the process has a ledger.
fn note_unknown_lookup() {
    let Some(state) = state::state() else { return };
    if state.phase.load(Ordering::Acquire) == state::ACTIVE
        && let Some(header) = state.shared.header()
    {
        header.unknown_lookups.fetch_add(1, Ordering::Relaxed);
    }
}

/// Unreachable in a build without overflow checks, unless an invariant of this library is broken.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::abort()
}
