//! What the BPF programs in the kernel tell the daemon about the processes of jobs.
//!
//! Both sides are built from one tree and the daemon carries the programs inside itself, so these
//! layouts have no version.

/// A followed process has a child process. Threads are not reported.
pub const KIND_FORK: u32 = 1;
/// A followed process runs another program.
pub const KIND_EXEC: u32 = 2;
/// The last thread of a followed process has ended.
pub const KIND_EXIT: u32 = 3;

/// [`Record::sender`] and its two neighbours are valid.
pub const FLAG_SENDER: u32 = 1;
/// The kernel chose the process as a victim because memory ran out.
pub const FLAG_OOM: u32 = 2;

/// One event in the ring buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// One of the `KIND` constants.
    pub kind: u32,
    /// The process (thread group), in the initial PID namespace. For a fork: the child.
    pub pid: u32,
    /// When the process started, nanoseconds of `CLOCK_BOOTTIME`. With the pid its identity.
    pub start_ns: u64,
    /// What the daemon gave for the ancestor it asked to follow.
    pub root: u64,
    /// For a fork: the process that forked.
    pub parent: u32,
    /// For an exit: the status as `wait` gives it.
    pub status: u32,
    /// For an exit by signal: the process that sent it; 0 if the kernel did.
    pub sender: u32,
    /// The sender's user, in the initial user namespace.
    pub sender_uid: u32,
    /// `si_code` of the signal.
    pub signal_code: i32,
    /// The `FLAG` bits.
    pub flags: u32,
    /// Name of the running program, cut to 15 bytes and ended by a zero.
    pub comm: [u8; 16],
}

/// A process in the kernel's set of followed processes; the key is its pid.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// See [`Record::root`].
    pub root: u64,
    /// See [`Record::start_ns`].
    pub start_ns: u64,
}

const _: () = assert!(size_of::<Record>() == 64 && align_of::<Record>() == 8);
const _: () = assert!(size_of::<Followed>() == 16 && align_of::<Followed>() == 8);
