//! The one system call without a safe wrapper: `fork` of a process that goes on without `exec`.

use std::io;

use rustix::process::{Pid, WaitOptions, waitpid};

/// Forks. `None` in the child, the child's pid in the parent.
///
/// # Errors
/// The system's error.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the callers have started no thread of their own, and the driver's threads are its own
    // affair: as in any pre-forking program, the child's allocator is in a consistent state.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Waits for a child: its exit code, or 128 + the signal that killed it.
///
/// # Errors
/// The system's error.
pub(crate) fn wait(pid: Pid) -> io::Result<u8> {
    let (_, status) = waitpid(Some(pid), WaitOptions::empty())?
        .ok_or_else(|| io::Error::other("waitpid returned no status"))?;
    let code = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 255,
    };
    Ok(u8::try_from(code).unwrap_or(255))
}
