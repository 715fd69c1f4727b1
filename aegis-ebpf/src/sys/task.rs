//! Fields of the kernel's `task_struct`, `signal_struct` and `kernel_siginfo`.

use aya_ebpf::Global;
use aya_ebpf::helpers::bpf_probe_read_kernel;

// Offsets in bytes, set by the daemon before loading (`telemetry/bpf/offsets.rs`).
#[unsafe(no_mangle)]
static TASK_PID: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static TASK_TGID: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static TASK_START: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static TASK_LEADER: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static TASK_SIGNAL: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static TASK_EXIT_CODE: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static SIGNAL_FLAGS: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static SIGNAL_EXIT_CODE: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static SIGNAL_LIVE: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static SIGINFO_CODE: Global<u32> = Global::new(0);

/// `SIGNAL_GROUP_EXIT` of `include/linux/sched/signal.h`: all threads end with one status.
const GROUP_EXIT: u32 = 4;
/// `SEND_SIG_NOINFO` and `SEND_SIG_PRIV` are 0 and 1 instead of a pointer.
const SEND_SIG_PRIV: u64 = 1;

/// A `struct task_struct *`.
#[derive(Clone, Copy)]
pub(crate) struct Task(u64);

impl Task {
    /// A tracepoint's argument that is a task.
    pub(crate) const fn new(address: u64) -> Self {
        Self(address)
    }

    /// The thread's id.
    #[inline(always)]
    pub(crate) fn pid(self) -> Option<u32> {
        read(self.0, &TASK_PID)
    }

    /// The process's id.
    #[inline(always)]
    pub(crate) fn tgid(self) -> Option<u32> {
        read(self.0, &TASK_TGID)
    }

    /// When it started, nanoseconds of `CLOCK_BOOTTIME`.
    #[inline(always)]
    pub(crate) fn start_ns(self) -> Option<u64> {
        read(self.0, &TASK_START)
    }

    /// Whether no thread of the process is left. Two threads that end at once may both see it.
    #[inline(always)]
    pub(crate) fn is_last(self) -> bool {
        read::<i32>(self.signal(), &SIGNAL_LIVE) == Some(0)
    }

    /// The process's status as `wait` gives it. Valid while its last thread ends.
    #[inline(always)]
    pub(crate) fn status(self) -> Option<u32> {
        let signal = self.signal();
        if read::<u32>(signal, &SIGNAL_FLAGS)? & GROUP_EXIT != 0 {
            return read(signal, &SIGNAL_EXIT_CODE);
        }
        // Every thread ended by itself: the first one's status counts.
        read(read(self.0, &TASK_LEADER)?, &TASK_EXIT_CODE)
    }

    #[inline(always)]
    fn signal(self) -> u64 {
        read(self.0, &TASK_SIGNAL).unwrap_or(0)
    }
}

/// `si_code` of a `struct kernel_siginfo *`; 0 (`SI_USER`) where there is none.
#[inline(always)]
pub(crate) fn signal_code(info: u64) -> i32 {
    if info <= SEND_SIG_PRIV {
        return 0;
    }
    read(info, &SIGINFO_CODE).unwrap_or(0)
}

/// Whether the kernel sends the signal by itself: a fault, the out-of-memory killer.
#[inline(always)]
pub(crate) fn sender_is_kernel(info: u64) -> bool {
    info == SEND_SIG_PRIV || signal_code(info) > 0
}

#[inline(always)]
fn read<T>(structure: u64, offset: &Global<u32>) -> Option<T> {
    let address = structure.wrapping_add(u64::from(offset.load()));
    // SAFETY: the helper checks the address and fails where nothing is mapped; all values read here
    // are integers, for which any bytes are valid.
    unsafe { bpf_probe_read_kernel(address as *const T) }.ok()
}
