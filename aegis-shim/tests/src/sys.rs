//! Shared memory and packet sockets for the fake daemon.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use aegis_common::abi::lease::{LEASE_BYTES, LEASE_LINES_OFFSET, LeaseHeader, LeaseLine};
use aegis_common::abi::ledger::{
    GPU_LINES_OFFSET, GpuLine, LAUNCH_LINES, LAUNCH_LINES_OFFSET, LEDGER_BYTES, LaunchLine,
    LedgerHeader,
};
use aegis_common::abi::trace::{TRACED_LEDGER_BYTES, TRACES, TRACES_OFFSET, Trace};

/// Memory shared with the client.
#[derive(Debug)]
pub struct Pages {
    address: *mut u8,
    bytes: usize,
    file: File,
}

// SAFETY: the memory is only accessed through atomics.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Zeroed memory.
    ///
    /// # Errors
    /// If the kernel gives none.
    pub fn new(bytes: usize) -> io::Result<Self> {
        // SAFETY: a C string.
        let fd = unsafe { libc::memfd_create(c"aegis-test".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(bytes as u64)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of the file.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            address: address.cast(),
            bytes,
            file,
        })
    }

    /// The memory's descriptor.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// A descriptor that can only read.
    ///
    /// # Errors
    /// If /proc is not there.
    pub fn read_only(&self) -> io::Result<File> {
        File::open(format!("/proc/self/fd/{}", self.fd()))
    }

    fn at<T>(&self, offset: usize) -> &T {
        assert!(offset + size_of::<T>() <= self.bytes);
        // SAFETY: within the mapping.
        let address = unsafe { self.address.add(offset) }.cast::<T>();
        // SAFETY: all T here consist of atomics, for which all bits are valid.
        unsafe { &*address }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; borrows of it have ended.
        unsafe { libc::munmap(self.address.cast(), self.bytes) };
    }
}

/// A ledger as the daemon sees it.
#[derive(Debug)]
pub struct Ledger(pub Pages);

impl Ledger {
    /// An empty ledger.
    ///
    /// # Errors
    /// If the kernel gives no memory.
    pub fn new() -> io::Result<Self> {
        Pages::new(TRACED_LEDGER_BYTES).map(Self)
    }

    /// As daemons of ABI 1.0 made them: without traces.
    ///
    /// # Errors
    /// If the kernel gives no memory.
    pub fn untraced() -> io::Result<Self> {
        Pages::new(LEDGER_BYTES).map(Self)
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &LedgerHeader {
        self.0.at(0)
    }

    /// A GPU's line.
    #[must_use]
    pub fn gpu(&self, slot: usize) -> &GpuLine {
        self.0.at(GPU_LINES_OFFSET + slot * size_of::<GpuLine>())
    }

    /// All traces.
    pub fn traces(&self) -> impl Iterator<Item = &Trace> {
        (0..TRACES).map(|slot| self.0.at(TRACES_OFFSET + slot * size_of::<Trace>()))
    }

    /// All launch lines.
    pub fn launch_lines(&self) -> impl Iterator<Item = &LaunchLine> {
        (0..LAUNCH_LINES).map(|slot| {
            self.0
                .at(LAUNCH_LINES_OFFSET + slot * size_of::<LaunchLine>())
        })
    }
}

/// A lease page as the daemon sees it.
#[derive(Debug)]
pub struct Lease(pub Pages);

impl Lease {
    /// A page without terms.
    ///
    /// # Errors
    /// If the kernel gives no memory.
    pub fn new() -> io::Result<Self> {
        Pages::new(LEASE_BYTES).map(Self)
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &LeaseHeader {
        self.0.at(0)
    }

    /// A line.
    #[must_use]
    pub fn line(&self, slot: usize) -> &LeaseLine {
        self.0
            .at(LEASE_LINES_OFFSET + slot * size_of::<LeaseLine>())
    }
}

fn address(path: &Path) -> (libc::sockaddr_un, libc::socklen_t) {
    // SAFETY: all-zero bytes are a socket address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_encoded_bytes();
    assert!(
        bytes.len() < address.sun_path.len(),
        "socket path too long: {}",
        path.display()
    );
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    (address, size_of::<libc::sockaddr_un>() as libc::socklen_t)
}

/// A listening packet socket.
///
/// # Errors
/// From the system calls.
pub fn listen(path: &Path) -> io::Result<OwnedFd> {
    // SAFETY: plain numbers.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let (address, length) = address(path);
    // SAFETY: an address of that length.
    if unsafe { libc::bind(fd, (&raw const address).cast(), length) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: our own socket.
    if unsafe { libc::listen(fd, 64) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(socket)
}

/// Waits for a connection.
///
/// # Errors
/// If the socket was shut down.
pub fn accept(socket: &OwnedFd) -> io::Result<OwnedFd> {
    let none = std::ptr::null_mut();
    // SAFETY: a listening socket; no address is asked for.
    let fd = unsafe {
        libc::accept4(
            socket.as_raw_fd(),
            none,
            std::ptr::null_mut(),
            libc::SOCK_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Ends all waits in `accept`.
pub fn shut_down(socket: &OwnedFd) {
    // SAFETY: our own socket.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
}

/// One packet; empty at the end of the connection.
///
/// # Errors
/// From the system call.
pub fn receive(socket: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut packet = vec![0; 1024];
    // SAFETY: a buffer of that length.
    let length = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            packet.as_mut_ptr().cast(),
            packet.len(),
            0,
        )
    };
    packet.truncate(usize::try_from(length).map_err(|_| io::Error::last_os_error())?);
    Ok(packet)
}

/// Sends one packet with descriptors.
///
/// # Errors
/// If the peer is gone.
pub fn send(socket: &OwnedFd, packet: &[u8], descriptors: &[RawFd]) -> io::Result<()> {
    let mut vector = libc::iovec {
        iov_base: packet.as_ptr().cast_mut().cast(),
        iov_len: packet.len(),
    };
    let mut control = [0u64; 8];
    // SAFETY: all-zero bytes are a message header.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    if !descriptors.is_empty() {
        let bytes = size_of_val(descriptors) as u32;
        message.msg_control = control.as_mut_ptr().cast();
        // SAFETY: computes a length.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(bytes) } as usize;
        // SAFETY: the message has a control buffer.
        let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        // SAFETY: the control buffer has room for one header.
        let header = unsafe { &mut *header };
        header.cmsg_level = libc::SOL_SOCKET;
        header.cmsg_type = libc::SCM_RIGHTS;
        // SAFETY: computes a length.
        header.cmsg_len = unsafe { libc::CMSG_LEN(bytes) } as usize;
        // SAFETY: the header is in the control buffer.
        let data = unsafe { libc::CMSG_DATA(header) };
        // SAFETY: the control buffer has room for the descriptors behind the header.
        unsafe {
            std::ptr::copy_nonoverlapping(descriptors.as_ptr().cast::<u8>(), data, bytes as usize);
        }
    }
    // SAFETY: all parts of the message live through the call.
    if unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// `CLOCK_MONOTONIC`, nanoseconds.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: room for a time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
