//! Layout of `simgpu.state`: plain atomics, all zero at creation, mapped shared by each process.
//!
//! The file is sparse: tables that are not used cost no memory.

use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::sys::RobustMutex;

/// GPUs a machine can have.
pub const MAX_GPUS: usize = 16;
/// Processes, live or remembered, a machine can have.
pub const MAX_PROCESSES: usize = 128;
/// Allocations of one process that the ledger lists; totals are right beyond that too.
pub const MAX_LEDGER: usize = 4096;
/// Past segments of progress kept for each queue, to tell when an event happened.
pub const MAX_SEGMENTS: usize = 512;
/// Past sums kept for each GPU, to tell recent utilisation.
pub const MAX_SAMPLES: usize = 16;
/// Faults armed at one time.
pub const MAX_FAULTS: usize = 64;

pub(crate) const MAGIC: u64 = 0x7369_6d67_7075_0001;

/// The file.
#[repr(C, align(64))]
pub struct State {
    pub(crate) magic: AtomicU64,
    /// Guards process slots, charges and faults. Never taken on the launch path.
    pub(crate) lock: RobustMutex,
    /// Non-zero: launches have to look at `faults`.
    pub(crate) launch_faults: AtomicU64,
    pub(crate) faults: [FaultState; MAX_FAULTS],
    pub(crate) gpus: [GpuState; MAX_GPUS],
    pub(crate) processes: [ProcessState; MAX_PROCESSES],
}

/// One armed fault; which fields mean what is in `fault.rs`.
#[repr(C)]
pub(crate) struct FaultState {
    pub(crate) kind: AtomicU32,
    pub(crate) code: AtomicU32,
    /// 0 = any process.
    pub(crate) pid: AtomicU32,
    /// 0 = any GPU, else index + 1.
    pub(crate) gpu: AtomicU32,
    /// Matching calls still let through.
    pub(crate) skip: AtomicU64,
    /// Matching calls still failed (`u64::MAX` = for ever).
    pub(crate) times: AtomicU64,
    pub(crate) value: AtomicU64,
}

/// Time line of one GPU.
#[repr(C, align(64))]
pub(crate) struct GpuState {
    /// Guards `evaluated_ns`, the sums and each queue's progress. Never taken on the launch path.
    pub(crate) lock: RobustMutex,
    /// Until when all queues of this GPU have been evaluated.
    pub(crate) evaluated_ns: AtomicU64,
    /// Time with at least one kernel running.
    pub(crate) busy_ns: AtomicU64,
    /// Integrals of the machine-wide shares, permille · ns.
    pub(crate) sm_active: AtomicU64,
    pub(crate) sm_occupancy: AtomicU64,
    pub(crate) dram_active: AtomicU64,
    /// Samples ever taken; the newest is at `(count - 1) % MAX_SAMPLES`.
    pub(crate) sample_count: AtomicU64,
    pub(crate) samples: [Sample; MAX_SAMPLES],
}

/// The sums of a GPU at one time.
#[repr(C)]
pub(crate) struct Sample {
    pub(crate) at_ns: AtomicU64,
    pub(crate) busy_ns: AtomicU64,
    pub(crate) dram_active: AtomicU64,
}

/// Slot of one process.
#[repr(C, align(64))]
pub(crate) struct ProcessState {
    pub(crate) status: AtomicU32,
    pub(crate) pid: AtomicU32,
    /// Field 22 of `/proc/<pid>/stat`.
    pub(crate) start_time: AtomicU64,
    /// Grows with each registration: tells the oldest remembered slot.
    pub(crate) generation: AtomicU64,
    pub(crate) ledger_used: AtomicU32,
    pub(crate) hung: AtomicU32,
    pub(crate) counters: Counters,
    pub(crate) gpus: [ProcessGpu; MAX_GPUS],
    pub(crate) ledger: [LedgerEntry; MAX_LEDGER],
}

/// Slot not in use.
pub(crate) const FREE: u32 = 0;
/// Owned by a process that was alive when last looked at.
pub(crate) const LIVE: u32 = 1;
/// The owner is gone; kept for its statistics until the slot is needed.
pub(crate) const DEAD: u32 = 2;
/// Made by a test to stand for a process that is not simulated; never reaped.
pub(crate) const FOREIGN: u32 = 3;

/// Calls that are counted instead of journalled.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Counters {
    /// Kernel launches of any kind outside graphs.
    pub launches: AtomicU64,
    /// Graph launches.
    pub graph_launches: AtomicU64,
    /// Copies.
    pub copies: AtomicU64,
    /// Memsets.
    pub memsets: AtomicU64,
    /// Host functions enqueued.
    pub host_functions: AtomicU64,
}

/// One process on one GPU.
#[repr(C, align(64))]
pub(crate) struct ProcessGpu {
    pub(crate) queue: Queue,
    /// Device memory of allocations, in whole 2 MiB blocks, bytes.
    pub(crate) allocated: AtomicU64,
    /// Device memory of the context; 0 = no context, bytes.
    pub(crate) context: AtomicU64,
    /// Device memory of loaded modules, bytes.
    pub(crate) modules: AtomicU64,
    /// Highest sum of the three, bytes.
    pub(crate) peak: AtomicU64,
}

/// Work of one process on one GPU, as solo time. The owner adds, evaluators complete.
#[repr(C, align(64))]
pub(crate) struct Queue {
    /// Work pushed since the beginning, ns of solo time.
    pub(crate) enqueued: AtomicU64,
    /// The same weighted with each kernel's share, permille · ns.
    pub(crate) enqueued_sm: AtomicU64,
    pub(crate) enqueued_occupancy: AtomicU64,
    pub(crate) enqueued_dram: AtomicU64,
    /// When the queue last became non-empty; it makes no progress before.
    pub(crate) started_ns: AtomicU64,
    pub(crate) done: Done,
    pub(crate) segments: [Segment; MAX_SEGMENTS],
}

/// Progress of a queue; written under the GPU's lock.
#[repr(C, align(64))]
pub(crate) struct Done {
    pub(crate) completed: AtomicU64,
    pub(crate) sm: AtomicU64,
    pub(crate) occupancy: AtomicU64,
    pub(crate) dram: AtomicU64,
    /// Wall time with work of this queue running, ns.
    pub(crate) busy_ns: AtomicU64,
    /// Segments ever begun; the newest is at `(count - 1) % MAX_SEGMENTS`.
    pub(crate) segment_count: AtomicU64,
}

/// A stretch of steady progress: from (time, position) to (time, position).
#[repr(C)]
pub(crate) struct Segment {
    pub(crate) from_ns: AtomicU64,
    pub(crate) from_position: AtomicU64,
    pub(crate) to_ns: AtomicU64,
    pub(crate) to_position: AtomicU64,
}

/// One allocation of a process; `handle` 0 = empty.
#[repr(C)]
pub(crate) struct LedgerEntry {
    pub(crate) handle: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) gpu: AtomicU32,
    pub(crate) kind: AtomicU32,
}
