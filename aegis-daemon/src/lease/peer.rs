//! Which process is at the other end of a shim connection (contract C12).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aegis_common::id::ProcessKey;

use super::process::{effective_uid, exited, gone, open_pid, start_ticks};
use crate::sys::seqpacket::{PeerCredentials, peer_pidfd};

/// The process that connected, by the kernel's word and never by the message's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShimPeer {
    /// The process.
    pub process: ProcessKey,
    /// Its effective uid when it connected.
    pub uid: u32,
}

/// Identifies the peer of `socket`; the pidfd refers to the same process.
///
/// # Errors
///
/// `NotFound` if it is gone or in a PID namespace that cannot be seen from here; else whatever the
/// kernel reports.
pub(super) fn identify(
    socket: BorrowedFd<'_>,
    credentials: PeerCredentials,
) -> io::Result<(ShimPeer, OwnedFd)> {
    let PeerCredentials { pid, uid } = credentials;
    let pid = pid.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            "the peer is in a PID namespace that cannot be seen from here",
        )
    })?;
    match peer_pidfd(socket) {
        Ok(pidfd) => with_pidfd(pid, uid, pidfd),
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
            without_peer_pidfd(pid, uid)
        }
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Err(gone()),
        Err(error) => Err(error),
    }
}

/// Kernel 6.5 and newer: the pidfd is the peer's. While it is alive its pid is not reused, so what
/// `/proc/PID` says is about the peer.
fn with_pidfd(pid: u32, uid: u32, pidfd: OwnedFd) -> io::Result<(ShimPeer, OwnedFd)> {
    let start_ticks = start_ticks(pid)?;
    if exited(pidfd.as_fd())? {
        return Err(gone());
    }
    let process = ProcessKey { pid, start_ticks };
    Ok((ShimPeer { process, uid }, pidfd))
}

/// Older kernels. A pid reused between `connect` and here would pass for the peer, so the process
/// must at least still belong to the peer's user; a thief with the same uid gains nothing, it could
/// have read the token from its victim's environment anyway.
fn without_peer_pidfd(pid: u32, uid: u32) -> io::Result<(ShimPeer, OwnedFd)> {
    let pidfd = open_pid(pid)?;
    if effective_uid(pid)? != uid {
        return Err(gone());
    }
    with_pidfd(pid, uid, pidfd)
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;
    use crate::sys::seqpacket::peer_credentials;

    #[test]
    fn both_routes_agree_on_this_process() {
        let (left, _right) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let credentials = peer_credentials(left.as_fd()).unwrap();
        let (peer, _pidfd) = identify(left.as_fd(), credentials).unwrap();
        assert_eq!(peer.process.pid, std::process::id());
        let pid = credentials.pid.unwrap();
        let (old, _pidfd) = without_peer_pidfd(pid, credentials.uid).unwrap();
        assert_eq!(old, peer);
        let unseen = PeerCredentials { pid: None, uid: 0 };
        assert!(identify(left.as_fd(), unseen).is_err());
    }
}
