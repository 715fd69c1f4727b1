//! Watching descriptors that tokio has no type for.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers `descriptor` with the runtime's reactor for reading.
///
/// # Errors
/// The reactor has no room for it (out of watches or memory), or it cannot be watched (a regular
/// file); the descriptor comes back.
///
/// # Panics
/// Outside a tokio runtime with I/O enabled.
pub fn register(descriptor: OwnedFd) -> Result<AsyncFd<OwnedFd>, (OwnedFd, io::Error)> {
    // SAFETY: an `OwnedFd` keeps its number and stays open until the `AsyncFd`, which owns it from
    // here on and gives it out by shared reference only, has deregistered it.
    let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    registered.map_err(tokio::io::unix::AsyncFdRegisterError::into_parts)
}

/// [`register`] for callers with no further use for a descriptor that cannot be watched.
///
/// # Errors
/// As [`register`].
///
/// # Panics
/// As [`register`].
pub fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    register(descriptor).map_err(|(_, error)| error)
}
