//! Naming a process so that a later one of the same pid is never taken for it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use aegis_common::id::ProcessKey;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::procfs;
use crate::sys::reactor;

/// The start time of the process now called `pid`, in clock ticks since boot (field 22 of
/// `/proc/PID/stat`).
///
/// # Errors
///
/// `NotFound` if there is no such process; `InvalidData` if the kernel's text cannot be read.
pub fn start_ticks(pid: u32) -> io::Result<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat"))?;
    let process = procfs::parse(pid, &stat).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("/proc/{pid}/stat has no start time"),
        )
    })?;
    Ok(process.key.start_ticks)
}

/// The effective uid of the process now called `pid`. Unlike the owner of `/proc/PID`, which is root
/// for every process that made itself undumpable.
///
/// # Errors
///
/// `NotFound` if there is no such process; `InvalidData` if the kernel's text cannot be read.
pub fn effective_uid(pid: u32) -> io::Result<u32> {
    let status = fs::read(format!("/proc/{pid}/status"))?;
    parse_effective_uid(&status).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("/proc/{pid}/status has no uid"),
        )
    })
}

/// The second number of the line `Uid:`. The name in the first line has its newlines escaped.
fn parse_effective_uid(status: &[u8]) -> Option<u32> {
    let line = status
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"Uid:"))?;
    let text = std::str::from_utf8(line).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The command name of the process now called `pid`, if `/proc` tells.
#[must_use]
pub fn command(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned())
}

/// A pidfd of exactly that process.
///
/// # Errors
///
/// `NotFound` if it is gone, even if its pid is in use again; else whatever `pidfd_open` reports.
pub fn open_process(process: ProcessKey) -> io::Result<OwnedFd> {
    let pidfd = open_pid(process.pid)?;
    // Read after the pidfd exists and believed only while it is alive: the pid cannot have been
    // reused in between.
    let ticks = start_ticks(process.pid)?;
    if ticks != process.start_ticks || exited(&pidfd)? {
        return Err(gone());
    }
    Ok(pidfd)
}

/// Whether exactly that process still runs. Errors count as "no".
#[must_use]
pub fn is_alive(process: ProcessKey) -> bool {
    open_process(process).is_ok()
}

/// Waits until the process behind a pidfd has exited. Must run inside the tokio runtime.
///
/// # Errors
///
/// Whatever registering the descriptor reports.
pub async fn wait_exit(pidfd: OwnedFd) -> io::Result<()> {
    reactor::watch(pidfd)?.readable().await?.retain_ready();
    Ok(())
}

/// Whether the process behind a pidfd has exited (it may still be a zombie).
pub(super) fn exited(pidfd: impl AsFd) -> io::Result<bool> {
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    Ok(poll(&mut fds, Some(&Timespec::default()))? > 0)
}

pub(super) fn open_pid(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(gone)?;
    pidfd_open(pid, PidfdFlags::empty()).map_err(|error| {
        if error == rustix::io::Errno::SRCH {
            gone()
        } else {
            error.into()
        }
    })
}

pub(super) fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the process is gone")
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_status_is_read_without_panic(status in proptest::collection::vec(any::<u8>(), 0..256)) {
            let _ = parse_effective_uid(&status);
        }
    }

    #[test]
    fn the_effective_uid_is_the_second() {
        let status = b"Name:\tUid:\\n\nUmask:\t0022\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n";
        assert_eq!(parse_effective_uid(status), Some(2));
        assert_eq!(parse_effective_uid(b"Uid:\t1\n"), None);
        let own = effective_uid(std::process::id()).unwrap();
        assert_eq!(own, rustix::process::geteuid().as_raw());
    }

    #[tokio::test]
    async fn a_process_is_known_until_it_exits() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let key = ProcessKey {
            pid: child.id(),
            start_ticks: start_ticks(child.id()).unwrap(),
        };
        let pidfd = open_process(key).unwrap();
        assert!(is_alive(key));
        let other = ProcessKey {
            start_ticks: key.start_ticks + 1,
            ..key
        };
        assert!(!is_alive(other));
        drop(child.stdin.take());
        wait_exit(pidfd).await.unwrap();
        assert!(!is_alive(key));
        child.wait().unwrap();
        assert!(!is_alive(key));
    }
}
