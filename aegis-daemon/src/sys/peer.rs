//! Who is at the other end of a Unix socket.

use std::os::fd::{AsFd, AsRawFd};

/// Supplementary groups of the peer at the time it connected (`SO_PEERGROUPS`, Linux 4.13).
///
/// # Errors
/// Whatever `getsockopt` says; old kernels answer `ENOPROTOOPT`.
pub fn peer_groups(socket: impl AsFd) -> std::io::Result<Vec<u32>> {
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut bytes = libc::socklen_t::try_from(groups.len() * size_of::<libc::gid_t>())
            .map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        // SAFETY: the pointer and `bytes` describe the whole buffer, which outlives the call, and
        // the kernel writes at most `bytes` bytes of plain integers.
        let result = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut bytes,
            )
        };
        let count = usize::try_from(bytes).unwrap_or(0) / size_of::<libc::gid_t>();
        if result == 0 {
            groups.truncate(count);
            return Ok(groups);
        }
        let error = std::io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ERANGE) || count <= groups.len() {
            return Err(error);
        }
        groups.resize(count, 0);
    }
}
