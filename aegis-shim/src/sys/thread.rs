//! The one thread-local slot: 16 bytes of static TLS.
//!
//! Stable Rust has no `#[thread_local]`, and std's would bring `__tls_get_addr`, destructors and
//! libgcc; so the slot is declared in assembly and reached through the initial-exec model, which is
//! two loads.

use core::arch::{asm, global_asm};

global_asm!(
    ".pushsection .tbss.aegis_thread_slot, \"awT\", @nobits",
    ".balign 16",
    ".globl aegis_thread_slot",
    ".hidden aegis_thread_slot",
    ".type aegis_thread_slot, @tls_object",
    ".size aegis_thread_slot, 16",
    "aegis_thread_slot:",
    ".zero 16",
    ".popsection",
);

/// What each thread has for itself; zero at its start.
#[repr(C)]
pub(crate) struct ThreadSlot {
    /// The thread's cell in the state page, null before its first launch. The launch hooks read it
    /// in assembly, at offset 0.
    pub(crate) cell: *mut super::state::Cell,
    /// Depth of hooked driver calls: calls that the driver makes to itself are not accounted.
    pub(crate) depth: u64,
}

const _: () = {
    assert!(size_of::<ThreadSlot>() == 16);
    // The launch hooks follow slot -> cell -> line and trace at these offsets.
    assert!(core::mem::offset_of!(ThreadSlot, cell) == 0);
    assert!(core::mem::offset_of!(super::state::Cell, line) == 0);
    assert!(core::mem::offset_of!(super::state::Cell, trace) == 8);
};

/// This thread's slot.
#[inline]
pub(crate) fn slot() -> *mut ThreadSlot {
    let slot: *mut ThreadSlot;
    // SAFETY: reads the thread pointer and the offset the loader filled in.
    unsafe {
        asm!(
            "mov {slot}, qword ptr [rip + aegis_thread_slot@GOTTPOFF]",
            "add {slot}, qword ptr fs:[0]",
            slot = out(reg) slot,
            options(nostack, readonly),
        );
    }
    slot
}

/// Counts nested driver calls while it lives.
pub(crate) struct Depth;

impl Depth {
    /// Enters a driver call; `None` if one is already under way on this thread.
    #[inline]
    pub(crate) fn enter() -> Option<Self> {
        let slot = slot();
        // SAFETY: this thread's own slot.
        let depth = unsafe { &mut (*slot).depth };
        if *depth > 0 {
            return None;
        }
        *depth = 1;
        Some(Self)
    }
}

impl Drop for Depth {
    #[inline]
    fn drop(&mut self) {
        let slot = slot();
        // SAFETY: this thread's own slot.
        unsafe { (*slot).depth = 0 };
    }
}
