//! Waiting in tokio until a descriptor is readable.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a descriptor with tokio's reactor for reading.
///
/// # Errors
/// The reactor has no room for it (out of watches or memory); the descriptor comes back.
///
/// # Panics
/// Outside a tokio runtime with I/O enabled.
pub fn register(descriptor: OwnedFd) -> Result<AsyncFd<OwnedFd>, (OwnedFd, io::Error)> {
    // SAFETY: an `OwnedFd` keeps its number and stays open until the `AsyncFd`, which owns it from
    // here on and gives it out by shared reference only, has deregistered it.
    let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    registered.map_err(tokio::io::unix::AsyncFdRegisterError::into_parts)
}
