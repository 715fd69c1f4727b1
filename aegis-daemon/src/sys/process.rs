//! Processes: fork, exec, signals, inherited descriptors, resource usage.

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use rustix::process::Pid;

/// Exit status of a forked child whose closure panicked.
const PANICKED: c_int = 125;
/// Kernel signals are 1 to 64.
const LAST_SIGNAL: c_int = 64;

/// Forks; the child runs `child` and exits with its result. Nothing of the parent's stack is
/// unwound in the child.
///
/// # Errors
/// The process has more than one thread (the child could then meet a lock nobody releases), or the
/// kernel refuses.
pub fn fork(child: impl FnOnce() -> i32) -> io::Result<Pid> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("fork needs a single-threaded process"));
    }
    // SAFETY: there is exactly one thread, so the child's copy of every lock and of the allocator
    // is in a consistent, unlocked state, and the child may do whatever the parent may.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let status = catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED);
            // SAFETY: `_exit` has no preconditions; it skips the parent's destructors.
            unsafe { libc::_exit(status) }
        }
        pid => Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork returned no pid")),
    }
}

/// Replaces the process's program. Returns only on failure. No PATH search.
pub fn execve(program: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let list = |strings: &[CString]| -> Vec<*const c_char> {
        let pointers = strings.iter().map(|string| string.as_ptr());
        pointers.chain([ptr::null()]).collect()
    };
    let (arguments, environment) = (list(arguments), list(environment));
    // SAFETY: all three point to NUL-terminated strings, the lists end with a null pointer, and
    // all outlive the call.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Sends a signal of any number to a process; 0 only asks whether it may be signalled. rustix knows
/// the named ones alone.
///
/// # Errors
/// There is no such signal or process, or it may not be signalled.
pub fn signal(pid: Pid, number: c_int) -> io::Result<()> {
    // SAFETY: kill(2) takes two numbers and touches no memory of ours.
    match unsafe { libc::kill(pid.as_raw_nonzero().get(), number) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives every signal its default disposition and unblocks all: what a freshly started program
/// expects.
///
/// # Errors
/// The mask cannot be changed.
pub fn reset_signals() -> io::Result<()> {
    // The kernel's `struct sigaction` with SIG_DFL, no flags, no mask. glibc's own function refuses
    // the two signals it keeps for itself, which whoever started us may have ignored.
    let default = [0_u64; 4];
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: `default` is at least as large as the kernel's structure, all-zero bytes are a
        // valid one, and a default disposition calls no code. SIGKILL and SIGSTOP give EINVAL.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                ptr::null_mut::<u64>(),
                size_of::<u64>(),
            )
        };
    }
    let set = signal_set(&[]);
    // SAFETY: `set` is an initialised signal set; the old mask is not asked for.
    let result = unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut()) };
    checked(result).map(drop)
}

/// Blocks the signals and returns a non-blocking descriptor from which they are read.
///
/// # Errors
/// Those of `sigprocmask` and `signalfd`.
pub fn signal_descriptor(signals: &[c_int]) -> io::Result<OwnedFd> {
    let set = signal_set(signals);
    // SAFETY: `set` is an initialised signal set; the old mask is not asked for.
    let result = unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) };
    checked(result)?;
    // SAFETY: -1 asks for a new descriptor; `set` is an initialised signal set.
    let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    let fd = checked(fd)?;
    // SAFETY: signalfd has just returned this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Reads all pending signals of a [`signal_descriptor`].
///
/// # Errors
/// The descriptor cannot be read.
pub fn read_signals(descriptor: &OwnedFd) -> io::Result<Vec<c_int>> {
    const RECORD: usize = size_of::<libc::signalfd_siginfo>();
    let mut signals = Vec::new();
    let mut buffer = [0_u8; RECORD * 8];
    loop {
        match rustix::io::read(descriptor, &mut buffer) {
            Ok(0) | Err(rustix::io::Errno::AGAIN) => return Ok(signals),
            // The record's first field is the signal's number, a native u32.
            Ok(length) => {
                signals.extend(buffer[..length].chunks_exact(RECORD).filter_map(|record| {
                    c_int::try_from(u32::from_ne_bytes(*record.first_chunk()?)).ok()
                }))
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Closes every descriptor but 0, 1 and 2. For the first lines of a program's `main`, where
/// whatever else is open was left there by whoever started it.
///
/// # Errors
/// The kernel has no `close_range` (before 5.9) and `/proc/self/fd` cannot be read.
pub fn close_inherited() -> io::Result<()> {
    // SAFETY: by this function's contract no object of this program owns a descriptor above 2 yet.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    if result == 0 {
        return Ok(());
    }
    let open: Vec<c_int> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        // SAFETY: as above; the directory's own descriptor is closed already and only gives EBADF.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

/// What the ended and waited-for children used, their descendants included.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Processor time in user mode, milliseconds.
    pub user_ms: u64,
    /// Processor time in the kernel, milliseconds.
    pub system_ms: u64,
    /// Largest resident set of any one process, KiB.
    pub max_rss_kib: u64,
}

/// The calling process's children's [`Usage`].
#[must_use]
pub fn children_usage() -> Usage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for one `rusage`; on failure the zeroes stay.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    // SAFETY: all-zero bytes are a valid `rusage`, and so is what the kernel wrote.
    let usage = unsafe { usage.assume_init() };
    let millis = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1000
            + u64::try_from(time.tv_usec).unwrap_or(0) / 1000
    };
    Usage {
        user_ms: millis(usage.ru_utime),
        system_ms: millis(usage.ru_stime),
        max_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
    }
}

fn signal_set(signals: &[c_int]) -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the pointer is valid for a signal set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for signal in signals {
        // SAFETY: the set was initialised above.
        unsafe { libc::sigaddset(set.as_mut_ptr(), *signal) };
    }
    // SAFETY: sigemptyset initialised it.
    unsafe { set.assume_init() }
}

fn checked(result: c_int) -> io::Result<c_int> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
