//! Who is at the other end of a Unix socket.
//!
//! `rustix` reads `SO_PEERCRED` into a type whose pid cannot be zero, but the kernel reports pid 0
//! for a peer in a PID namespace this process cannot see; and it has no `SO_PEERPIDFD`.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// The peer's credentials when it connected, as the kernel recorded them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// The pid in this process's PID namespace; `None` if the peer is not visible in it.
    pub pid: Option<u32>,
    /// The effective uid.
    pub uid: u32,
}

/// `SO_PEERCRED`.
///
/// # Errors
///
/// Whatever `getsockopt` reports.
pub fn peer_credentials(socket: BorrowedFd<'_>) -> io::Result<PeerCredentials> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut len = socklen::<libc::ucred>();
    // SAFETY: `credentials` is a live, exclusively borrowed `ucred` of exactly `len` bytes, all of
    // whose bit patterns are valid; the kernel writes at most `len` bytes to it.
    let rc = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut len,
        )
    };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(PeerCredentials {
        pid: u32::try_from(credentials.pid).ok().filter(|pid| *pid != 0),
        uid: credentials.uid,
    })
}

/// `SO_PEERPIDFD` (kernel 6.5): a pidfd of the very process that connected.
///
/// # Errors
///
/// `ENOPROTOOPT` on older kernels; `ESRCH` if the peer is already reaped; else whatever
/// `getsockopt` reports.
pub fn peer_pidfd(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut pidfd: RawFd = -1;
    let mut len = socklen::<RawFd>();
    // SAFETY: `pidfd` is a live, exclusively borrowed C int of exactly `len` bytes; the kernel
    // writes at most `len` bytes to it.
    let rc = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERPIDFD,
            (&raw mut pidfd).cast(),
            &raw mut len,
        )
    };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    if pidfd < 0 {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    // SAFETY: on success the kernel installed a new descriptor (close-on-exec) that nothing else
    // in this process knows, so this is its only owner.
    Ok(unsafe { OwnedFd::from_raw_fd(pidfd) })
}

fn socklen<T>() -> libc::socklen_t {
    // Both types here are smaller than 16 bytes.
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn a_pair_in_one_process_names_this_process() {
        let (left, _right) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let credentials = peer_credentials(left.as_fd()).unwrap();
        assert_eq!(credentials.pid, Some(std::process::id()));
        assert_eq!(credentials.uid, rustix::process::geteuid().as_raw());
    }
}
