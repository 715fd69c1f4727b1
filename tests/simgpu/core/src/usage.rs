//! What readers (NVML, tests, tools) see of the machine.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::layout::{DEAD, FOREIGN, FREE, ProcessState};
use crate::machine::Machine;
use crate::memory::AllocationKind;
use crate::process::reap;

/// Memory and time of one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GpuUsage {
    /// Total memory, bytes.
    pub total: u64,
    /// Kept by the driver, bytes.
    pub reserved: u64,
    /// Held by processes, bytes.
    pub used: u64,
    /// The rest, bytes.
    pub free: u64,
    /// Time with a kernel running, ns since the machine was made.
    pub busy_ns: u64,
    /// Integral of SM active, permille · ns.
    pub sm_active: u64,
    /// Integral of SM occupancy, permille · ns.
    pub sm_occupancy: u64,
    /// Integral of DRAM active, permille · ns.
    pub dram_active: u64,
    /// Until when the times are evaluated, ns of `CLOCK_MONOTONIC`.
    pub evaluated_ns: u64,
}

/// One allocation of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// Device pointer or handle.
    pub handle: u64,
    /// Requested bytes.
    pub bytes: u64,
    /// GPU index.
    pub gpu: usize,
    /// Which call made it.
    pub kind: AllocationKind,
}

/// One process on one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessGpuUsage {
    /// GPU index.
    pub gpu: usize,
    /// Context, bytes; 0 = none.
    pub context_bytes: u64,
    /// Modules, bytes.
    pub module_bytes: u64,
    /// Allocations in whole blocks, bytes.
    pub allocated_bytes: u64,
    /// Highest sum of the three, bytes.
    pub peak_bytes: u64,
    /// Time with a kernel of this process running, ns.
    pub busy_ns: u64,
    /// Solo time of the work done, ns.
    pub work_ns: u64,
    /// Integral of SM active of the work done, permille · ns of solo time.
    pub sm_active: u64,
    /// Integral of DRAM active of the work done, permille · ns of solo time.
    pub dram_active: u64,
}

impl ProcessGpuUsage {
    /// All device memory, bytes: what NVML shows.
    pub fn bytes(&self) -> u64 {
        self.context_bytes + self.module_bytes + self.allocated_bytes
    }
}

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Pid.
    pub pid: u32,
    /// Start time (field 22 of `/proc/<pid>/stat`), 0 for a foreign process.
    pub start_time: u64,
    /// Whether it is there; statistics of dead processes are kept a while.
    pub alive: bool,
    /// Made by `Faults::set_foreign`.
    pub foreign: bool,
    /// GPUs on which it has, or had, anything.
    pub gpus: Vec<ProcessGpuUsage>,
    /// Its live allocations.
    pub allocations: Vec<Allocation>,
    /// Kernel launches.
    pub launches: u64,
    /// Graph launches.
    pub graph_launches: u64,
    /// Copies.
    pub copies: u64,
    /// Memsets.
    pub memsets: u64,
}

/// GPU time by GPU and process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// In the order of their index.
    pub gpus: Vec<GpuUsage>,
    /// Oldest first.
    pub processes: Vec<ProcessUsage>,
}

impl Machine {
    /// Each GPU's memory and time, dead processes released and the time line evaluated first.
    pub fn gpu_usage(&self) -> Vec<GpuUsage> {
        self.reap();
        let gpus = 0..self.config().gpus.len();
        gpus.map(|gpu| {
            self.advance(gpu);
            self.gpu_usage_now(gpu)
        })
        .collect()
    }

    /// The present figures as they are.
    pub(crate) fn gpu_usage_now(&self, gpu: usize) -> GpuUsage {
        let state = self.state();
        let line = &state.gpus[gpu];
        let config = &self.config().gpus[gpu];
        let present = state.processes.iter().filter(|p| p.is_present());
        let used: u64 = present.map(|p| p.gpus[gpu].held()).sum();
        GpuUsage {
            total: config.memory_bytes,
            reserved: config.reserved_bytes,
            used,
            free: config.usable_bytes().saturating_sub(used),
            busy_ns: line.busy_ns.load(Relaxed),
            sm_active: line.sm_active.load(Relaxed),
            sm_occupancy: line.sm_occupancy.load(Relaxed),
            dram_active: line.dram_active.load(Relaxed),
            evaluated_ns: line.evaluated_ns.load(Relaxed),
        }
    }

    /// The processes that are there, oldest first, dead ones released first.
    pub fn processes(&self) -> Vec<ProcessUsage> {
        self.all_processes()
            .into_iter()
            .filter(|p| p.alive)
            .collect()
    }

    /// Times by GPU and by process, dead processes included while they are remembered.
    pub fn timeline(&self) -> Timeline {
        Timeline {
            gpus: self.gpu_usage(),
            processes: self.all_processes(),
        }
    }

    fn all_processes(&self) -> Vec<ProcessUsage> {
        let gpus = self.config().gpus.len();
        (0..gpus).for_each(|gpu| self.advance(gpu));
        let state = self.state();
        let _guard = state.lock.lock();
        reap(state);
        let mut slots: Vec<&ProcessState> = state
            .processes
            .iter()
            .filter(|p| p.status.load(Acquire) != FREE)
            .collect();
        slots.sort_by_key(|p| p.generation.load(Relaxed));
        slots.into_iter().map(|p| p.usage(gpus)).collect()
    }
}

impl ProcessState {
    fn usage(&self, gpus: usize) -> ProcessUsage {
        let status = self.status.load(Acquire);
        let used = self.ledger_used.load(Relaxed) as usize;
        let listed = self
            .ledger
            .iter()
            .take(used)
            .filter(|e| e.handle.load(Relaxed) != 0);
        ProcessUsage {
            pid: self.pid.load(Relaxed),
            start_time: self.start_time.load(Relaxed),
            alive: status != DEAD,
            foreign: status == FOREIGN,
            gpus: (0..gpus)
                .map(|gpu| self.gpu_usage(gpu))
                .filter(|u| u.peak_bytes > 0 || u.bytes() > 0)
                .collect(),
            allocations: listed
                .map(|e| Allocation {
                    handle: e.handle.load(Relaxed),
                    bytes: e.bytes.load(Relaxed),
                    gpu: e.gpu.load(Relaxed) as usize,
                    kind: AllocationKind::of(e.kind.load(Relaxed)),
                })
                .collect(),
            launches: self.counters.launches.load(Relaxed),
            graph_launches: self.counters.graph_launches.load(Relaxed),
            copies: self.counters.copies.load(Relaxed),
            memsets: self.counters.memsets.load(Relaxed),
        }
    }

    fn gpu_usage(&self, gpu: usize) -> ProcessGpuUsage {
        let own = &self.gpus[gpu];
        let done = &own.queue.done;
        ProcessGpuUsage {
            gpu,
            context_bytes: own.context.load(Relaxed),
            module_bytes: own.modules.load(Relaxed),
            allocated_bytes: own.allocated.load(Relaxed),
            peak_bytes: own.peak.load(Relaxed),
            busy_ns: done.busy_ns.load(Relaxed),
            work_ns: done.completed.load(Relaxed),
            sm_active: done.sm.load(Relaxed),
            dram_active: done.dram.load(Relaxed),
        }
    }
}
