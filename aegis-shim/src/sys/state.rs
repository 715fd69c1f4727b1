//! The process's state: pages that a forked child sees wiped.
//!
//! A child shares its parent's memory image but must not use its ledger, locks or launch lines.
//! `MADV_WIPEONFORK` zeroes the pages in the child, and zero means "not started"; so the child
//! starts anew at its first driver call, without a fork handler and without a `getpid` per call.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use aegis_common::abi::MAX_GPUS;
use aegis_common::abi::ledger::{LAUNCH_LINES, LaunchLine};
use aegis_common::abi::trace::Trace;
use shim_core::blocks::Blocks;
use shim_core::capture::Captures;
use shim_core::contexts::Contexts;
use shim_core::physical::Physical;
use shim_core::sys::spin::SpinLock;
use shim_core::sys::syscall;

use super::shared::Shared;

/// Not started: fresh, or wiped by a fork.
pub(crate) const FRESH: u32 = 0;
/// A thread is talking to the daemon.
pub(crate) const STARTING: u32 = 1;
/// Ledger and lease are mapped.
pub(crate) const ACTIVE: u32 = 2;
/// The process runs as without the library.
pub(crate) const OFF: u32 = 3;

/// A thread's place in the launch count.
#[repr(C)]
pub(crate) struct Cell {
    /// The launch line that the thread counts in; null: claim one first. At offset 0 for the
    /// launch hooks' assembly.
    pub(crate) line: AtomicPtr<LaunchLine>,
    /// Where the thread traces its launches; not null while `line` is not. At offset 8 for the
    /// assembly.
    pub(crate) trace: AtomicPtr<Trace>,
    /// Id of the thread that owns the cell, 0 if nobody does.
    pub(crate) owner: AtomicU32,
}

/// How to reach the daemon.
pub(crate) struct Address {
    /// The socket's address as the kernel takes it: family and path.
    pub(crate) socket: [u8; 110],
    /// Bytes in use of `socket`.
    pub(crate) length: usize,
    /// The job's secret.
    pub(crate) token: [u8; 32],
}

/// Everything the process keeps. All zero at first.
pub(crate) struct State {
    pub(crate) phase: AtomicU32,
    pub(crate) shared: Shared,
    pub(crate) address: SpinLock<Address>,
    pub(crate) cells: [Cell; LAUNCH_LINES],
    /// Launch lines for a process without a ledger: counted in, never read.
    pub(crate) spare_lines: [LaunchLine; LAUNCH_LINES],
    /// The trace of every thread without one in the ledger: written by all of them, never read.
    pub(crate) spare_trace: Trace,
    pub(crate) first_launch: AtomicU32,
    pub(crate) blocks: Blocks,
    pub(crate) physical: SpinLock<Physical>,
    pub(crate) captures: Captures,
    pub(crate) contexts: Contexts,
    /// GPUs of memory pools, remembered as those of contexts are.
    pub(crate) pools: Contexts,
    /// Ledger line and lease line of each GPU, see `gpus.rs`.
    pub(crate) gpus: SpinLock<()>,
    pub(crate) lease_lines: [AtomicU32; MAX_GPUS],
    /// Requests refused in the present episode, by GPU.
    pub(crate) tries: [AtomicU32; MAX_GPUS],
    /// Totals shown to the application by lease line, fixed at the first look; see `hooks/info.rs`.
    pub(crate) shown_total: [AtomicU64; MAX_GPUS],
}

static STATE: AtomicPtr<State> = AtomicPtr::new(core::ptr::null_mut());

/// The state; `None` if the kernel cannot give pages that a fork wipes (before Linux 4.14).
#[inline]
pub(crate) fn state() -> Option<&'static State> {
    let state = STATE.load(Ordering::Acquire);
    if state.is_null() {
        return create();
    }
    // SAFETY: a State in pages that are never unmapped; all access is through atomics and locks.
    Some(unsafe { &*state })
}

#[cold]
fn create() -> Option<&'static State> {
    const PROT_READ_WRITE: i32 = 3;
    const MAP_PRIVATE_ANONYMOUS: i32 = 0x22;
    const MADV_WIPEONFORK: i32 = 18;
    let bytes = size_of::<State>();
    // SAFETY: anonymous memory, used as a State only.
    let pages = unsafe { syscall::mmap(bytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1) }.ok()?;
    // SAFETY: our own fresh mapping.
    if unsafe { syscall::madvise(pages, bytes, MADV_WIPEONFORK) }.is_err() {
        // SAFETY: nobody has seen the mapping.
        unsafe { syscall::munmap(pages, bytes) };
        return None;
    }
    let fresh = pages.cast::<State>();
    let winner = match STATE.compare_exchange(
        core::ptr::null_mut(),
        fresh,
        Ordering::AcqRel,
        Ordering::Acquire,
    ) {
        Ok(_) => fresh,
        Err(other) => {
            // SAFETY: another thread was first; nobody has seen this mapping.
            unsafe { syscall::munmap(pages, bytes) };
            other
        }
    };
    // SAFETY: zeroed pages are a State: atomics, unlocked locks and empty tables.
    Some(unsafe { &*winner })
}
