//! The library in this process: initialised or not, and what it remembers between calls.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use simgpu_core::fault::FaultKind;
use simgpu_core::usage::GpuUsage;
use simgpu_core::{GpuConfig, Machine};

use crate::code::{Code, Result};
use crate::process::Baselines;

static MACHINE: OnceLock<Option<&'static Machine>> = OnceLock::new();
static STATE: Mutex<State> = Mutex::new(State {
    initialised: 0,
    baselines: Baselines::new(),
    samples: BTreeMap::new(),
    stale: BTreeMap::new(),
});

pub(crate) struct State {
    initialised: u32,
    pub(crate) baselines: Baselines,
    /// GPM samples by handle; `None` = allocated, nothing taken yet.
    pub(crate) samples: BTreeMap<u64, Option<(usize, GpuUsage)>>,
    /// Last GPM value by GPU and metric, for the stale fault.
    pub(crate) stale: BTreeMap<(usize, u32), f64>,
}

pub(crate) fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find() -> Option<&'static Machine> {
    *MACHINE.get_or_init(|| {
        let machine = Machine::of_library(find as *const c_void).ok()?;
        Some(Box::leak(Box::new(machine)))
    })
}

/// `nvmlInit`; counted.
pub(crate) fn initialise() -> Result<()> {
    let machine = find().ok_or(Code::DRIVER_NOT_LOADED)?;
    if let Some(code) = machine.fault(FaultKind::NvmlInit, 0, None) {
        return Err(Code(code));
    }
    let mut state = state();
    if state.initialised == 0 {
        state.baselines.take(machine);
    }
    state.initialised += 1;
    Ok(())
}

/// `nvmlShutdown`.
pub(crate) fn shut_down() -> Result<()> {
    let mut state = state();
    state.initialised = state
        .initialised
        .checked_sub(1)
        .ok_or(Code::UNINITIALIZED)?;
    Ok(())
}

/// The machine, after initialisation.
pub(crate) fn machine() -> Result<&'static Machine> {
    if state().initialised == 0 {
        return Err(Code::UNINITIALIZED);
    }
    find().ok_or(Code::UNINITIALIZED)
}

/// A GPU by its handle.
#[derive(Clone, Copy)]
pub(crate) struct Device {
    pub(crate) machine: &'static Machine,
    pub(crate) gpu: usize,
    pub(crate) config: &'static GpuConfig,
}

const FIRST: u64 = 0x4e56_0000;
const STEP: u64 = 0x100;

/// Handle of a GPU.
pub(crate) fn handle(gpu: usize) -> u64 {
    FIRST + gpu as u64 * STEP
}

/// The GPU of a handle; fails if a fault of all device queries is armed.
pub(crate) fn device(handle: u64) -> Result<Device> {
    let machine = machine()?;
    let offset = handle
        .checked_sub(FIRST)
        .filter(|o| o % STEP == 0)
        .ok_or(Code::INVALID_ARGUMENT)?;
    let gpu = (offset / STEP) as usize;
    let config = machine
        .config()
        .gpus
        .get(gpu)
        .ok_or(Code::INVALID_ARGUMENT)?;
    let device = Device {
        machine,
        gpu,
        config,
    };
    device.fault(FaultKind::NvmlDevice)?;
    Ok(device)
}

impl Device {
    /// Fails if the fault is armed for this GPU.
    pub(crate) fn fault(&self, kind: FaultKind) -> Result<()> {
        match self.machine.fault(kind, 0, Some(self.gpu)) {
            Some(code) => Err(Code(code)),
            None => Ok(()),
        }
    }

    /// Memory and time now.
    pub(crate) fn usage(&self) -> Result<GpuUsage> {
        self.machine
            .gpu_usage()
            .get(self.gpu)
            .copied()
            .ok_or(Code::UNKNOWN)
    }

    /// PCI bus number.
    pub(crate) fn bus(&self) -> u32 {
        self.gpu as u32 + 1
    }
}
