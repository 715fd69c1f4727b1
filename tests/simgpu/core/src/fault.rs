//! Faults that a test arms: failing allocations, hung processes, slow launches, broken NVML.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::layout::{FOREIGN, FREE, FaultState, LIVE};
use crate::machine::Machine;
use crate::process::Process;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum FaultKind {
    /// Device allocations return the code (2 = out of memory).
    Allocation = 1,
    /// `cuMemGetInfo` returns the code.
    MemInfo = 2,
    /// Launches return the code (719 = launch failure).
    Launch = 3,
    /// Each launch call takes `value` ns longer in the caller.
    SlowLaunch = 4,
    /// NVML's initialisation returns the code.
    NvmlInit = 5,
    /// All of NVML's device queries return the code (15 = GPU lost, 999 = unknown).
    NvmlDevice = 6,
    /// NVML's process lists return the code.
    NvmlProcessList = 7,
    /// NVML's memory info returns the code.
    NvmlMemory = 8,
    /// GPM metric values are NaN.
    GpmNan = 9,
    /// Each GPM metric's own status is the code.
    GpmMetric = 10,
    /// GPM samples stop moving: two samples are the same.
    GpmStale = 11,
    /// NVML's utilisation queries (rates, process samples) return the code.
    NvmlUtilization = 12,
}

/// A fault to arm. Start from [`Fault::new`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// Result code returned.
    pub code: u32,
    /// Only for this process.
    pub pid: Option<u32>,
    /// Only for this GPU.
    pub gpu: Option<usize>,
    /// Matching calls let through before the first that fails.
    pub skip: u64,
    /// Matching calls that fail; `u64::MAX` = until cleared.
    pub times: u64,
    /// See [`FaultKind`].
    pub value: u64,
}

impl Fault {
    /// A fault for all processes and GPUs, at once and until cleared.
    pub fn new(kind: FaultKind, code: u32) -> Self {
        Self {
            kind,
            code,
            pid: None,
            gpu: None,
            skip: 0,
            times: u64::MAX,
            value: 0,
        }
    }

    /// The `n`-th (from 1) allocation from now on returns `code`, once.
    pub fn nth_allocation(n: u64, code: u32) -> Self {
        Self {
            skip: n.saturating_sub(1),
            times: 1,
            ..Self::new(FaultKind::Allocation, code)
        }
    }
}

/// The fault injection of a machine.
pub struct Faults<'m>(&'m Machine);

impl Machine {
    /// Fault injection.
    pub fn faults(&self) -> Faults<'_> {
        Faults(self)
    }

    /// Consults the armed faults: counts this call and returns the code if it must fail.
    pub fn fault(&self, kind: FaultKind, pid: u32, gpu: Option<usize>) -> Option<u32> {
        let state = self.state();
        let matching = |f: &&FaultState| f.matches(kind, pid, gpu);
        state.faults.iter().find(matching)?;
        let _guard = state.lock.lock();
        state
            .faults
            .iter()
            .filter(matching)
            .find_map(FaultState::strike)
    }
}

impl<'m> Process<'m> {
    /// [`Machine::fault`] for this process.
    pub fn fault(&self, kind: FaultKind, gpu: usize) -> Option<u32> {
        self.machine.fault(kind, self.pid(), Some(gpu))
    }

    /// Not 0 while launches must call [`Self::launch_fault`]. A reference to keep: launches look at
    /// it each time.
    pub fn launch_faults(&self) -> &'m AtomicU64 {
        &self.machine.state().launch_faults
    }

    /// Delays the launch if so armed; returns the code if it must fail.
    pub fn launch_fault(&self, gpu: usize) -> Option<u32> {
        let pid = self.pid();
        let slow = |f: &&FaultState| f.matches(FaultKind::SlowLaunch, pid, Some(gpu));
        if let Some(fault) = self.machine.state().faults.iter().find(slow) {
            std::thread::sleep(Duration::from_nanos(fault.value.load(Relaxed)));
        }
        self.fault(FaultKind::Launch, gpu)
    }
}

impl FaultState {
    fn matches(&self, kind: FaultKind, pid: u32, gpu: Option<usize>) -> bool {
        let wanted_pid = self.pid.load(Relaxed);
        let wanted_gpu = self.gpu.load(Relaxed);
        self.kind.load(Acquire) == kind as u32
            && (wanted_pid == 0 || wanted_pid == pid)
            && (wanted_gpu == 0 || gpu.is_none_or(|g| g as u32 + 1 == wanted_gpu))
    }

    fn strike(&self) -> Option<u32> {
        let skip = self.skip.load(Relaxed);
        if skip > 0 {
            self.skip.store(skip - 1, Relaxed);
            return None;
        }
        let times = self.times.load(Relaxed);
        if times != u64::MAX {
            if times <= 1 {
                self.kind.store(0, Release);
            }
            self.times.store(times.saturating_sub(1), Relaxed);
        }
        Some(self.code.load(Relaxed))
    }
}

impl Faults<'_> {
    /// Arms a fault.
    ///
    /// # Errors
    /// All fault slots are in use, or the GPU does not exist.
    pub fn arm(&self, fault: Fault) -> Result<()> {
        if let Some(gpu) = fault.gpu.filter(|g| *g >= self.0.config().gpus.len()) {
            return Err(Error::NoGpu(gpu));
        }
        let state = self.0.state();
        let _guard = state.lock.lock();
        let slot = state.faults.iter().find(|f| f.kind.load(Relaxed) == 0);
        let slot = slot.ok_or_else(|| {
            Error::Config("faults: clear some first, all slots are armed".to_owned())
        })?;
        slot.code.store(fault.code, Relaxed);
        slot.pid.store(fault.pid.unwrap_or(0), Relaxed);
        slot.gpu
            .store(fault.gpu.map_or(0, |g| g as u32 + 1), Relaxed);
        slot.skip.store(fault.skip, Relaxed);
        slot.times.store(fault.times, Relaxed);
        slot.value.store(fault.value, Relaxed);
        slot.kind.store(fault.kind as u32, Release);
        if matches!(fault.kind, FaultKind::Launch | FaultKind::SlowLaunch) {
            state.launch_faults.store(1, Relaxed);
        }
        Ok(())
    }

    /// Clears all faults (not hung and foreign processes).
    pub fn clear(&self) {
        let state = self.0.state();
        let _guard = state.lock.lock();
        for fault in &state.faults {
            fault.kind.store(0, Relaxed);
        }
        state.launch_faults.store(0, Relaxed);
    }

    /// Stops (or restarts) all progress of a process's kernels: who waits for them waits for ever.
    /// Returns whether the process is known.
    pub fn set_hung(&self, pid: u32, hung: bool) -> bool {
        let live = self
            .0
            .state()
            .processes
            .iter()
            .filter(|p| p.status.load(Acquire) == LIVE);
        let mut known = false;
        for process in live.filter(|p| p.pid.load(Relaxed) == pid) {
            process.hung.store(u32::from(hung), Relaxed);
            known = true;
        }
        known
    }

    /// Lets a process that does not use the simulated driver hold `bytes` on `gpu`, as a job from
    /// outside would; it may exceed what is free. 0 on all GPUs removes it.
    pub fn set_foreign(&self, pid: u32, gpu: usize, bytes: u64) -> Result<()> {
        if gpu >= self.0.config().gpus.len() {
            return Err(Error::NoGpu(gpu));
        }
        let process = self.0.claim(pid, 0, FOREIGN)?;
        let _guard = self.0.state().lock.lock();
        let own = process.state();
        own.gpus[gpu].allocated.store(bytes, Relaxed);
        if own.gpus.iter().all(|g| g.held() == 0) {
            own.status.store(FREE, Release);
        }
        Ok(())
    }
}
