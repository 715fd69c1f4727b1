//! The ledger: what one process holds and does on its GPUs, published by the shim.
//!
//! Layout (bytes): header `0..4096`, then [`MAX_GPUS`] GPU lines of 256 bytes, then
//! [`LAUNCH_LINES`] launch lines of 128 bytes. All counters are independent `u64`s; a reader
//! never needs two of them to agree.
//! Launch traces follow ([`super::trace`]).

use core::sync::atomic::{AtomicU32, AtomicU64};

use super::MAX_GPUS;

/// Kinds of device memory that are accounted apart. The number is the index in [`GpuLine::used`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Kind {
    /// `cuMemAlloc`, `cuMemAllocPitch`.
    Linear = 0,
    /// `cuMemAllocManaged`. Resident pages vary; charged in full.
    Managed = 1,
    /// Stream-ordered allocations: the bytes asked for, charged from allocation to free. What a pool
    /// reserves beyond them (freed blocks up to its release threshold) is not charged in this
    /// version: it shows in NVML's figure and counts as the process's overhead.
    Pool = 2,
    /// `cuMemCreate` with a device location.
    Vmm = 3,
    /// Arrays and mipmapped arrays.
    Array = 4,
    /// Graph memory nodes.
    Graph = 5,
}

/// Number of [`Kind`]s in use; [`GpuLine::used`] has room for [`KIND_SLOTS`].
pub const KINDS: usize = 6;
/// Slots for kinds in a GPU line.
pub const KIND_SLOTS: usize = 8;
/// Names of the kinds in index order, as shown by `aegis inspect`.
pub const KIND_NAMES: [&str; KINDS] = ["linear", "managed", "pool", "vmm", "array", "graph"];

/// Threads that count launches without sharing a cache line. Further threads share the last line
/// with atomic additions.
pub const LAUNCH_LINES: usize = 64;
/// Bytes of a ledger without its traces.
pub const LEDGER_BYTES: usize = 4096 + MAX_GPUS * 256 + LAUNCH_LINES * 128;
/// Offset of the first GPU line.
pub const GPU_LINES_OFFSET: usize = 4096;
/// Offset of the first launch line.
pub const LAUNCH_LINES_OFFSET: usize = 4096 + MAX_GPUS * 256;

/// Reasons for which the shim passed a call through unchanged ([`LedgerHeader::bypass`] indices).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Bypass {
    /// The thread's current device could not be told.
    UnknownDevice = 0,
    /// A stream capture was open in the process.
    Capture = 1,
    /// The daemon was gone for longer than a lease binds.
    DaemonGone = 2,
    /// A hash table could not grow: the block is not accounted.
    TableFull = 3,
    /// The size of an allocation could not be told (sparse or exotic formats).
    UnknownSize = 4,
    /// A free of something never seen.
    UnknownFree = 5,
    /// The deadline passed and the process belongs to the oldest resident.
    OldestPassed = 6,
}

/// Slots for bypass reasons.
pub const BYPASS_SLOTS: usize = 16;
/// Number of [`Bypass`] reasons in use.
pub const BYPASSES: usize = 7;
/// Names of the bypass reasons in index order.
pub const BYPASS_NAMES: [&str; BYPASSES] = [
    "unknown_device",
    "capture",
    "daemon_gone",
    "table_full",
    "unknown_size",
    "unknown_free",
    "oldest_passed",
];

/// First page of a ledger. The daemon fills magic, version and size before it hands the memory
/// over; everything after `size` is the shim's.
#[repr(C, align(128))]
pub struct LedgerHeader {
    /// [`super::MAGIC`].
    pub magic: AtomicU64,
    /// [`super::ABI_MAJOR`].
    pub abi_major: AtomicU32,
    /// [`super::ABI_MINOR`].
    pub abi_minor: AtomicU32,
    /// [`LEDGER_BYTES`].
    pub size: AtomicU32,
    /// Non-zero while a stream capture is open anywhere in the process.
    pub captures_open: AtomicU32,
    /// `CLOCK_MONOTONIC` nanoseconds of the process's first launch; 0 before it.
    pub first_launch_ns: AtomicU64,
    /// Lookups through `cuGetProcAddress` or `dlsym` of `cu*` names the hook table does not know.
    pub unknown_lookups: AtomicU64,
    /// Launch lines handed out so far (may exceed [`LAUNCH_LINES`]).
    pub launch_lines: AtomicU32,
    /// GPU lines in use.
    pub gpu_lines: AtomicU32,
    /// Pass-through counts by [`Bypass`].
    pub bypass: [AtomicU64; BYPASS_SLOTS],
}

/// One GPU's account in one process. Written by all threads of the process with atomic additions.
#[repr(C, align(256))]
pub struct GpuLine {
    /// The GPU's UUID. All zero: line unused. Written once, before `gpu_lines` is raised.
    pub uuid: [AtomicU64; 2],
    /// Bytes held now, by [`Kind`].
    pub used: [AtomicU64; KIND_SLOTS],
    /// Highest sum of `used` so far, in bytes.
    pub peak: AtomicU64,
    /// Bytes asked of the driver and not yet answered. Raised (SeqCst) before the limit is read.
    pub inflight: AtomicU64,
    /// Allocations that succeeded.
    pub allocs: AtomicU64,
    /// Blocks given back.
    pub frees: AtomicU64,
    /// Allocations the driver itself refused with out-of-memory.
    pub driver_ooms: AtomicU64,
    /// Allocations the shim refused.
    pub denials: AtomicU64,
    /// Runs of refusals (by driver or shim) with no allocation of that size succeeding in between.
    pub episodes: AtomicU64,
    /// Bytes of the first refused request of the current or last episode.
    pub episode_bytes: AtomicU64,
    /// `CLOCK_MONOTONIC` nanoseconds of the last refusal.
    pub last_refusal_ns: AtomicU64,
    /// The process's launches (all kinds, all threads) when the last refusal was answered; an
    /// outcome is "oom" only if this is still the count at the end (contract C5).
    pub launches_at_refusal: AtomicU64,
    /// Non-zero while the episode is unrecovered: no allocation of at least that size succeeded
    /// since.
    pub unrecovered: AtomicU64,
}

/// Launch counts of one thread. Plain (relaxed) increments by that thread alone.
#[repr(C, align(128))]
pub struct LaunchLine {
    /// Kernel launches, all entry points.
    pub kernels: AtomicU64,
    /// Graph launches.
    pub graphs: AtomicU64,
    /// Copies.
    pub copies: AtomicU64,
    /// Memsets.
    pub memsets: AtomicU64,
    /// Host functions.
    pub host_functions: AtomicU64,
    /// Thread id in the process's PID namespace.
    pub tid: AtomicU64,
    /// GPU slot of the thread's last known current device, else [`super::NO_GPU`].
    pub gpu: AtomicU32,
}
