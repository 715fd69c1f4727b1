//! What needs `unsafe` below the hooks: the loader's data, thread-local storage, shared pages.

pub(crate) mod elf;
pub(crate) mod environment;
pub(crate) mod shared;
pub(crate) mod state;
pub(crate) mod thread;

/// Ends the process at an instruction that a debugger shows; nothing can be printed from here.
pub(crate) fn abort() -> ! {
    // SAFETY: an invalid instruction, which the kernel answers with SIGILL.
    unsafe { core::arch::asm!("ud2", options(noreturn, nostack)) }
}

// The precompiled core library names the unwinder's entry point in its tables. Nothing here unwinds
// (panic = "abort"), so it is never called; without a definition the library could not be loaded.
core::arch::global_asm!(
    ".pushsection .text.rust_eh_personality, \"ax\", @progbits",
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality, @function",
    "rust_eh_personality:",
    "ud2",
    ".size rust_eh_personality, 2",
    ".popsection",
);
