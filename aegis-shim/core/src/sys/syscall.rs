//! System calls without libc.
//!
//! libc's wrappers would set the application's `errno`, are cancellation points, and can be
//! interposed by other preloaded libraries; a hook must show none of that to its caller.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!(
    "aegis-shim supports x86-64 Linux: system calls, dlsym and the launch hooks are written in its assembly"
);

use core::arch::asm;

/// An error number of a system call (`errno` of the call, positive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

/// No such file or directory.
pub const ENOENT: Errno = Errno(2);
/// No such process or thread.
pub const ESRCH: Errno = Errno(3);
/// Interrupted by a signal.
pub const EINTR: Errno = Errno(4);
/// Try again (a full listen queue, an empty socket).
pub const EAGAIN: Errno = Errno(11);
/// Nobody listens.
pub const ECONNREFUSED: Errno = Errno(111);

/// x86-64 system call numbers.
mod number {
    pub(super) const CLOSE: usize = 3;
    pub(super) const FSTAT: usize = 5;
    pub(super) const POLL: usize = 7;
    pub(super) const MMAP: usize = 9;
    pub(super) const MUNMAP: usize = 11;
    pub(super) const SCHED_YIELD: usize = 24;
    pub(super) const MADVISE: usize = 28;
    pub(super) const GETPID: usize = 39;
    pub(super) const SOCKET: usize = 41;
    pub(super) const CONNECT: usize = 42;
    pub(super) const SENDTO: usize = 44;
    pub(super) const RECVMSG: usize = 47;
    pub(super) const FCNTL: usize = 72;
    pub(super) const GETTID: usize = 186;
    pub(super) const CLOCK_GETTIME: usize = 228;
    pub(super) const TGKILL: usize = 234;
}

/// # Safety
/// As the system call with that number and arguments requires.
unsafe fn raw(number: usize, arguments: [usize; 6]) -> Result<usize, Errno> {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: the kernel keeps all registers but rax, rcx and r11; the caller vouches for the call.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    if (-4095..0).contains(&result) {
        Err(Errno(-result as i32))
    } else {
        Ok(result as usize)
    }
}

/// Maps `bytes`; see mmap(2). `fd` is -1 for anonymous memory.
///
/// # Safety
/// The mapping must not replace another one (`MAP_FIXED` is not passed) and its uses must follow
/// the protection asked for.
pub unsafe fn mmap(bytes: usize, protection: i32, flags: i32, fd: i32) -> Result<*mut u8, Errno> {
    // SAFETY: a mapping at an address the kernel chooses touches no existing memory.
    unsafe {
        raw(
            number::MMAP,
            [
                0,
                bytes,
                protection as usize,
                flags as usize,
                fd as isize as usize,
                0,
            ],
        )
    }
    .map(|address| address as *mut u8)
}

/// Unmaps a mapping made by [`mmap`].
///
/// # Safety
/// Nothing may refer to the memory any more.
pub unsafe fn munmap(address: *mut u8, bytes: usize) {
    // SAFETY: the caller gives up the memory. The result is ignored: there is no way to react.
    let _ = unsafe { raw(number::MUNMAP, [address as usize, bytes, 0, 0, 0, 0]) };
}

/// See madvise(2).
///
/// # Safety
/// `address..address + bytes` is a mapping of the caller's that may be treated as advised.
pub unsafe fn madvise(address: *mut u8, bytes: usize, advice: i32) -> Result<(), Errno> {
    // SAFETY: the range is the caller's own mapping.
    unsafe {
        raw(
            number::MADVISE,
            [address as usize, bytes, advice as usize, 0, 0, 0],
        )
    }
    .map(drop)
}

/// Gives the processor to another thread.
pub fn sched_yield() {
    // SAFETY: takes no arguments and touches no memory.
    let _ = unsafe { raw(number::SCHED_YIELD, [0; 6]) };
}

/// The process id in its own PID namespace.
#[must_use]
pub fn getpid() -> i32 {
    // SAFETY: takes no arguments and touches no memory.
    unsafe { raw(number::GETPID, [0; 6]) }.map_or(0, |pid| pid as i32)
}

/// The thread id in the process's PID namespace.
#[must_use]
pub fn gettid() -> i32 {
    // SAFETY: takes no arguments and touches no memory.
    unsafe { raw(number::GETTID, [0; 6]) }.map_or(0, |tid| tid as i32)
}

/// Whether thread `tid` of process `pid` exists.
#[must_use]
pub fn thread_exists(pid: i32, tid: i32) -> bool {
    // SAFETY: signal 0 only checks.
    let result = unsafe { raw(number::TGKILL, [pid as usize, tid as usize, 0, 0, 0, 0]) };
    result != Err(ESRCH)
}

/// `CLOCK_MONOTONIC` in nanoseconds, the clock of the lease page's heartbeat.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let mut time = [0i64; 2];
    // SAFETY: `time` has the layout of a 64-bit timespec and lives through the call.
    let _ = unsafe {
        raw(
            number::CLOCK_GETTIME,
            [1, (&raw mut time) as usize, 0, 0, 0, 0],
        )
    };
    let [seconds, nanoseconds] = time;
    (seconds as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(nanoseconds as u64)
}

/// Closes a descriptor.
pub fn close(fd: i32) {
    // SAFETY: the callers close only descriptors they opened.
    let _ = unsafe { raw(number::CLOSE, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// A duplicate of `fd` that is at least `at_least`, closed on exec.
pub fn duplicate_above(fd: i32, at_least: i32) -> Result<i32, Errno> {
    const F_DUPFD_CLOEXEC: usize = 1030;
    // SAFETY: touches no memory.
    unsafe {
        raw(
            number::FCNTL,
            [fd as usize, F_DUPFD_CLOEXEC, at_least as usize, 0, 0, 0],
        )
    }
    .map(|fd| fd as i32)
}

/// Size of the file behind `fd`, bytes.
pub fn file_size(fd: i32) -> Result<u64, Errno> {
    /// Words of the kernel's `struct stat` on x86-64 (144 bytes) and the one with `st_size`.
    const WORDS: usize = 18;
    const SIZE: usize = 6;
    let mut stat = [0u64; WORDS];
    // SAFETY: `stat` has the size of the kernel's structure and lives through the call.
    unsafe {
        raw(
            number::FSTAT,
            [fd as usize, (&raw mut stat) as usize, 0, 0, 0, 0],
        )
    }?;
    Ok(stat[SIZE])
}

/// See socket(2).
pub fn socket(domain: i32, kind: i32) -> Result<i32, Errno> {
    // SAFETY: touches no memory.
    unsafe { raw(number::SOCKET, [domain as usize, kind as usize, 0, 0, 0, 0]) }.map(|fd| fd as i32)
}

/// See connect(2); `address` is the whole socket address.
pub fn connect(fd: i32, address: &[u8]) -> Result<(), Errno> {
    // SAFETY: the kernel reads `address` within its length.
    unsafe {
        raw(
            number::CONNECT,
            [
                fd as usize,
                address.as_ptr() as usize,
                address.len(),
                0,
                0,
                0,
            ],
        )
    }
    .map(drop)
}

/// Sends one packet without ever raising SIGPIPE.
pub fn send(fd: i32, packet: &[u8]) -> Result<usize, Errno> {
    const MSG_NOSIGNAL: usize = 0x4000;
    // SAFETY: the kernel reads `packet` within its length.
    unsafe {
        raw(
            number::SENDTO,
            [
                fd as usize,
                packet.as_ptr() as usize,
                packet.len(),
                MSG_NOSIGNAL,
                0,
                0,
            ],
        )
    }
}

/// Waits until `fd` is readable or hung up, at most `milliseconds`. `Ok(false)`: time passed.
pub fn poll_readable(fd: i32, milliseconds: i32) -> Result<bool, Errno> {
    #[repr(C)]
    struct PollFd {
        fd: i32,
        events: i16,
        revents: i16,
    }
    let mut entry = PollFd {
        fd,
        events: 1,
        revents: 0,
    };
    // SAFETY: one entry, alive through the call.
    unsafe {
        raw(
            number::POLL,
            [
                (&raw mut entry) as usize,
                1,
                milliseconds.max(0) as usize,
                0,
                0,
                0,
            ],
        )
    }
    .map(|ready| ready > 0)
}

/// Sleeps for some milliseconds or until a signal.
pub fn sleep_ms(milliseconds: i32) {
    // SAFETY: no entries, so the kernel touches no memory.
    let _ = unsafe { raw(number::POLL, [0, 0, milliseconds.max(0) as usize, 0, 0, 0]) };
}

/// Descriptors a packet can bring along.
pub const MAX_DESCRIPTORS: usize = 4;

/// Receives one packet and the descriptors sent with it (closed on exec), without blocking.
/// Returns the packet's length; unused descriptor slots are -1.
pub fn receive(fd: i32, packet: &mut [u8]) -> Result<(usize, [i32; MAX_DESCRIPTORS]), Errno> {
    /// `struct cmsghdr` and up to [`MAX_DESCRIPTORS`] descriptors.
    #[repr(C, align(8))]
    struct Control {
        length: usize,
        level: i32,
        kind: i32,
        descriptors: [i32; MAX_DESCRIPTORS],
    }
    #[repr(C)]
    struct Message {
        name: usize,
        name_length: u32,
        vectors: usize,
        vector_count: usize,
        control: usize,
        control_length: usize,
        flags: i32,
    }
    const SOL_SOCKET: i32 = 1;
    const SCM_RIGHTS: i32 = 1;
    const HEADER: usize = 16;
    const MSG_CMSG_CLOEXEC: usize = 0x4000_0000;
    const MSG_DONTWAIT: usize = 0x40;

    let vector = [packet.as_mut_ptr() as usize, packet.len()];
    let mut control = Control {
        length: 0,
        level: 0,
        kind: 0,
        descriptors: [-1; MAX_DESCRIPTORS],
    };
    let mut message = Message {
        name: 0,
        name_length: 0,
        vectors: (&raw const vector) as usize,
        vector_count: 1,
        control: (&raw mut control) as usize,
        control_length: size_of::<Control>(),
        flags: 0,
    };
    // SAFETY: all structures live through the call and carry their own lengths.
    let length = unsafe {
        raw(
            number::RECVMSG,
            [
                fd as usize,
                (&raw mut message) as usize,
                MSG_CMSG_CLOEXEC | MSG_DONTWAIT,
                0,
                0,
                0,
            ],
        )
    }?;
    let mut descriptors = [-1; MAX_DESCRIPTORS];
    if message.control_length >= HEADER && control.level == SOL_SOCKET && control.kind == SCM_RIGHTS
    {
        let count = control.length.saturating_sub(HEADER) / size_of::<i32>();
        for (to, from) in descriptors.iter_mut().zip(control.descriptors).take(count) {
            *to = from;
        }
    }
    Ok((length, descriptors))
}
