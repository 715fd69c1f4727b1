//! The lease page: what the daemon allows one process, written by the daemon alone.
//!
//! A tmpfs file owned by the daemon (mode 0644); the process receives it as a read-only
//! descriptor, so another user can neither map nor reopen it writable, and a restarted daemon can
//! write it again (contract C2).

use core::sync::atomic::{AtomicU32, AtomicU64};

/// Bytes of a lease page.
pub const LEASE_BYTES: usize = 4096;
/// Offset of the first lease line.
pub const LEASE_LINES_OFFSET: usize = 512;
/// A limit that denies nothing.
pub const UNLIMITED: u64 = u64::MAX;
/// A lease binds until this long after the heartbeat went stale (contract C3).
pub const LEASE_BINDS_NS: u64 = 30_000_000_000;

/// The GPU is held by the process's job. Without it every allocation there is denied.
pub const FLAG_HELD: u32 = 1 << 0;
/// The job is the oldest resident of the GPU: when the deadline of a `grow` passes with the daemon
/// alive, its request goes to the driver instead of being denied.
pub const FLAG_OLDEST: u32 = 1 << 1;

/// First 512 bytes of the lease page.
#[repr(C, align(128))]
pub struct LeaseHeader {
    /// [`super::MAGIC`].
    pub magic: AtomicU64,
    /// [`super::ABI_MAJOR`].
    pub abi_major: AtomicU32,
    /// [`super::ABI_MINOR`].
    pub abi_minor: AtomicU32,
    /// Lease lines in use.
    pub lines: AtomicU32,
    /// Reserved, 0.
    pub reserved: AtomicU32,
    /// `CLOCK_MONOTONIC` nanoseconds at which the daemon was last alive; written at least every
    /// ten seconds while the process lives.
    pub heartbeat_ns: AtomicU64,
}

/// What one process may hold on one GPU. Line `i` starts at
/// `LEASE_LINES_OFFSET + i * size_of::<LeaseLine>()`.
#[repr(C, align(64))]
pub struct LeaseLine {
    /// The GPU's UUID.
    pub uuid: [AtomicU64; 2],
    /// Bytes the process may hold (`used + inflight`); [`UNLIMITED`] denies nothing.
    pub limit: AtomicU64,
    /// Total to show in `cuMemGetInfo` and `cuDeviceTotalMem`; 0 shows the real one. Fixed for the
    /// life of the process (contract C10).
    pub virtual_total: AtomicU64,
    /// [`FLAG_HELD`] | [`FLAG_OLDEST`].
    pub flags: AtomicU32,
    /// Reserved, 0.
    pub reserved: AtomicU32,
}
