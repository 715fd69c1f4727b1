//! Descriptors handed down by whoever started the program.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// An own copy of an inherited descriptor. The original is left alone.
///
/// # Errors
/// If `number` is not an open descriptor.
pub fn descriptor(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the number is not -1, and the borrow lasts only for the `dup` below, which fails with
    // EBADF if the descriptor is not open.
    let inherited = unsafe { BorrowedFd::borrow_raw(number) };
    inherited.try_clone_to_owned()
}
