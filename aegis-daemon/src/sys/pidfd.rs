//! Waiting for a process's end without polling and without confusing it with a later one.

use std::os::fd::OwnedFd;

use aegis_common::id::ProcessKey;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Calls `gone` once the process has ended (at once if it already has).
///
/// Must run inside a Tokio runtime.
pub fn watch_exit(key: ProcessKey, gone: impl FnOnce() + Send + 'static) {
    let pidfd = open(key);
    tokio::spawn(async move {
        if let Some(pidfd) = pidfd
            && let Ok(pidfd) = AsyncFd::with_interest(pidfd, Interest::READABLE)
        {
            // Readable means ended; an error of the reactor is treated alike, the owner re-checks.
            let _ = pidfd.readable().await;
        }
        gone();
    });
}

/// A pidfd of exactly that process; `None` if it has ended.
fn open(key: ProcessKey) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(key.pid).ok()?)?;
    let pidfd = pidfd_open(pid, PidfdFlags::NONBLOCK).ok()?;
    // The pid may have been reused before the pidfd was opened; the start time tells.
    (crate::jobs::process_key(key.pid) == Some(key)).then_some(pidfd)
}
