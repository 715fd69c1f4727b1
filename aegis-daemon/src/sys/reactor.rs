//! Watching descriptors that tokio has no type for.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers `fd` with the runtime's reactor for reading. Must run inside the tokio runtime.
///
/// # Errors
///
/// Whatever `epoll_ctl` reports, e.g. for a regular file.
pub fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open, names one file description for as long as it lives, and the
    // `AsyncFd` owns it: nothing closes it before it is deregistered.
    let watched = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    watched.map_err(Into::into)
}
