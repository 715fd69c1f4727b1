//! Device memory: who holds how much. Free memory is always recomputed from what live processes
//! hold, so that no sum can be wrong after a process died in the middle of a change.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::layout::{MAX_LEDGER, State};
use crate::machine::Machine;
use crate::process::{Process, reap};

/// What an allocation is, in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum AllocationKind {
    /// `cuMemAlloc`, `cuMemAllocPitch`.
    Linear = 1,
    /// `cuMemAllocManaged`.
    Managed = 2,
    /// `cuMemCreate`.
    Physical = 3,
    /// `cuMemAllocAsync`, `cuMemAllocFromPoolAsync`.
    Pool = 4,
    /// `cuArrayCreate` and the like.
    Array = 5,
}

impl AllocationKind {
    pub(crate) fn of(value: u32) -> Self {
        match value {
            2 => Self::Managed,
            3 => Self::Physical,
            4 => Self::Pool,
            5 => Self::Array,
            _ => Self::Linear,
        }
    }
}

/// There was no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Free bytes at that moment.
    pub free: u64,
}

/// Bytes that `gpu` has left. Call with the lock held.
fn free(machine: &Machine, state: &State, gpu: usize) -> u64 {
    let usable = machine
        .config()
        .gpus
        .get(gpu)
        .map_or(0, |g| g.usable_bytes());
    let held: u64 = state
        .processes
        .iter()
        .filter(|p| p.is_present())
        .map(|p| p.gpus[gpu].held())
        .sum();
    usable.saturating_sub(held)
}

impl crate::layout::ProcessGpu {
    pub(crate) fn held(&self) -> u64 {
        self.allocated.load(Relaxed) + self.context.load(Relaxed) + self.modules.load(Relaxed)
    }
}

impl Machine {
    /// Free memory of a GPU in bytes, dead processes' memory counted as free.
    pub fn free_bytes(&self, gpu: usize) -> u64 {
        let state = self.state();
        let _guard = state.lock.lock();
        reap(state);
        free(self, state, gpu)
    }
}

impl Process<'_> {
    /// Free memory of a GPU in bytes, without looking whether other processes have died.
    pub fn free_bytes_now(&self, gpu: usize) -> u64 {
        let state = self.machine.state();
        let _guard = state.lock.lock();
        free(self.machine, state, gpu)
    }

    /// Takes device memory for allocations; `bytes` should be whole 2 MiB blocks. Returns the free
    /// bytes left.
    ///
    /// # Errors
    /// No room, also after releasing what dead processes held; nothing is changed.
    pub fn reserve(&self, gpu: usize, bytes: u64) -> Result<u64, OutOfMemory> {
        self.take(gpu, bytes, |g| &g.allocated)
    }

    /// Gives back what [`Self::reserve`] took.
    pub fn unreserve(&self, gpu: usize, bytes: u64) {
        self.give(gpu, bytes, |g| &g.allocated);
    }

    /// Charges the context on `gpu` (its size is in the configuration); once only.
    pub fn create_context(&self, gpu: usize) -> Result<(), OutOfMemory> {
        let bytes = self
            .machine
            .config()
            .gpus
            .get(gpu)
            .map_or(0, |g| g.context_bytes.max(1));
        if self.state().gpus[gpu].context.load(Relaxed) != 0 {
            return Ok(());
        }
        self.take(gpu, bytes, |g| &g.context).map(drop)
    }

    /// Releases everything the process has on `gpu`: context, modules, allocations, work.
    pub fn destroy_context(&self, gpu: usize) {
        let state = self.machine.state();
        let _guard = state.lock.lock();
        let own = &self.state().gpus[gpu];
        own.allocated.store(0, Relaxed);
        own.modules.store(0, Relaxed);
        own.context.store(0, Relaxed);
    }

    /// Charges the code of a module.
    pub fn load_module(&self, gpu: usize, bytes: u64) -> Result<(), OutOfMemory> {
        self.take(gpu, bytes, |g| &g.modules).map(drop)
    }

    /// Releases what [`Self::load_module`] charged.
    pub fn unload_module(&self, gpu: usize, bytes: u64) {
        self.give(gpu, bytes, |g| &g.modules);
    }

    fn take(
        &self,
        gpu: usize,
        bytes: u64,
        field: impl Fn(&crate::layout::ProcessGpu) -> &AtomicU64,
    ) -> Result<u64, OutOfMemory> {
        let state = self.machine.state();
        let _guard = state.lock.lock();
        let mut left = free(self.machine, state, gpu);
        if left < bytes && reap(state) {
            left = free(self.machine, state, gpu);
        }
        if left < bytes {
            return Err(OutOfMemory { free: left });
        }
        let own = &self.state().gpus[gpu];
        field(own).fetch_add(bytes, Relaxed);
        own.peak.fetch_max(own.held(), Relaxed);
        Ok(left - bytes)
    }

    fn give(
        &self,
        gpu: usize,
        bytes: u64,
        field: impl Fn(&crate::layout::ProcessGpu) -> &AtomicU64,
    ) {
        let state = self.machine.state();
        let _guard = state.lock.lock();
        let field = field(&self.state().gpus[gpu]);
        field.store(field.load(Relaxed).saturating_sub(bytes), Relaxed);
    }

    /// Notes an allocation of `bytes` requested bytes in the ledger, for readers. Beyond
    /// [`MAX_LEDGER`] entries it is left out.
    pub fn note_allocation(&self, handle: u64, bytes: u64, gpu: usize, kind: AllocationKind) {
        let _guard = self.machine.state().lock.lock();
        let own = self.state();
        let used = own.ledger_used.load(Relaxed) as usize;
        let slot = own
            .ledger
            .iter()
            .take(used)
            .position(|e| e.handle.load(Relaxed) == 0)
            .unwrap_or(used);
        let Some(entry) = own.ledger.get(slot) else {
            return;
        };
        entry.bytes.store(bytes, Relaxed);
        entry.gpu.store(gpu as u32, Relaxed);
        entry.kind.store(kind as u32, Relaxed);
        entry.handle.store(handle, Relaxed);
        if slot == used && used < MAX_LEDGER {
            own.ledger_used.store(used as u32 + 1, Relaxed);
        }
    }

    /// Removes an allocation from the ledger.
    pub fn forget_allocation(&self, handle: u64) {
        let _guard = self.machine.state().lock.lock();
        let own = self.state();
        let used = own.ledger_used.load(Relaxed) as usize;
        if let Some(entry) = own
            .ledger
            .iter()
            .take(used)
            .find(|e| e.handle.load(Relaxed) == handle)
        {
            entry.handle.store(0, Relaxed);
        }
    }
}
