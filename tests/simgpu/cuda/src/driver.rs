//! The driver in this process: made by `cuInit`, there until the process ends.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use simgpu_core::journal::Journal;
use simgpu_core::layout::Counters;
use simgpu_core::{GpuConfig, Machine, Process};

use crate::code::{Code, Result};
use crate::context::Contexts;
use crate::event::Events;
use crate::graph::Graphs;
use crate::heap::Heap;
use crate::host::HostMemory;
use crate::module::Modules;
use crate::pool::Pools;
use crate::sys::{FORKED, watch_forks};
use crate::vmm::Physical;

pub(crate) struct Driver {
    pub(crate) machine: &'static Machine,
    pub(crate) process: Process<'static>,
    pub(crate) journal: Journal,
    /// Machine index of each visible device.
    pub(crate) devices: Vec<usize>,
    /// Launches and copies cost nothing.
    pub(crate) zero: bool,
    /// Kept here so that a launch reaches them in one step.
    pub(crate) counters: &'static Counters,
    pub(crate) launch_faults: &'static AtomicU64,
    pub(crate) contexts: Mutex<Contexts>,
    pub(crate) heap: Mutex<Heap>,
    pub(crate) pools: Mutex<Pools>,
    pub(crate) physical: Mutex<Physical>,
    pub(crate) host: Mutex<HostMemory>,
    pub(crate) modules: Mutex<Modules>,
    pub(crate) events: Mutex<Events>,
    pub(crate) graphs: Mutex<Graphs>,
}

static MACHINE: OnceLock<Option<&'static Machine>> = OnceLock::new();
static DRIVER: OnceLock<Driver> = OnceLock::new();

/// Locks; a panic elsewhere (there should be none) does not spread.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The machine, if this library belongs to one.
pub(crate) fn machine() -> Option<&'static Machine> {
    *MACHINE.get_or_init(|| {
        let here = machine as *const c_void;
        let machine = Machine::of_library(here).ok()?;
        Some(Box::leak(Box::new(machine)))
    })
}

/// The driver after `cuInit`.
#[inline]
pub(crate) fn get() -> Result<&'static Driver> {
    if FORKED.load(Relaxed) {
        return Err(Code::NOT_INITIALIZED);
    }
    DRIVER.get().ok_or(Code::NOT_INITIALIZED)
}

/// `cuInit`.
pub(crate) fn initialise() -> Result<&'static Driver> {
    if FORKED.load(Relaxed) {
        return Err(Code::NOT_INITIALIZED);
    }
    if let Some(driver) = DRIVER.get() {
        return Ok(driver);
    }
    let machine = machine().ok_or(Code::NO_DEVICE)?;
    let devices = visible(
        &machine.config().gpus,
        std::env::var("CUDA_VISIBLE_DEVICES").ok().as_deref(),
    );
    if devices.is_empty() {
        return Err(Code::NO_DEVICE);
    }
    let (pid, start_time) = simgpu_core::self_identity();
    let process = machine
        .register(pid, start_time)
        .map_err(|_| Code::UNKNOWN)?;
    let driver = Driver {
        machine,
        process,
        journal: Journal::open(machine, pid, start_time),
        zero: machine.config().zero_duration,
        counters: process.counters(),
        launch_faults: process.launch_faults(),
        contexts: Mutex::new(Contexts::new(devices.len())),
        heap: Mutex::new(Heap::new()),
        pools: Mutex::new(Pools::new(devices.len())),
        physical: Mutex::new(Physical::new()),
        host: Mutex::new(HostMemory::default()),
        modules: Mutex::new(Modules::default()),
        events: Mutex::new(Events::default()),
        graphs: Mutex::new(Graphs::default()),
        devices,
    };
    let mut first = false;
    let driver = DRIVER.get_or_init(|| {
        first = true;
        driver
    });
    if first {
        watch_forks();
    }
    Ok(driver)
}

/// The machine's GPUs that `CUDA_VISIBLE_DEVICES` leaves, in its order: indices or UUID prefixes,
/// up to the first that is not valid; a device named twice makes the list invalid.
fn visible(gpus: &[GpuConfig], variable: Option<&str>) -> Vec<usize> {
    let Some(list) = variable else {
        return (0..gpus.len()).collect();
    };
    let mut devices = Vec::new();
    for entry in list.split(',').map(str::trim) {
        let index = if entry.starts_with("GPU-") {
            let mut matching = gpus
                .iter()
                .enumerate()
                .filter(|(_, g)| g.uuid.starts_with(entry));
            match (matching.next(), matching.next()) {
                (Some((index, _)), None) => Some(index),
                _ => None,
            }
        } else {
            entry.parse().ok().filter(|i| *i < gpus.len())
        };
        match index {
            Some(index) if devices.contains(&index) => return Vec::new(),
            Some(index) => devices.push(index),
            None => break,
        }
    }
    devices
}

impl Driver {
    /// Machine index of a device ordinal.
    pub(crate) fn gpu(&self, device: i32) -> Result<usize> {
        let ordinal = usize::try_from(device).map_err(|_| Code::INVALID_DEVICE)?;
        self.devices
            .get(ordinal)
            .copied()
            .ok_or(Code::INVALID_DEVICE)
    }

    /// Configuration of a device ordinal.
    pub(crate) fn config(&self, device: i32) -> Result<&'static GpuConfig> {
        let gpu = self.gpu(device)?;
        self.machine
            .config()
            .gpus
            .get(gpu)
            .ok_or(Code::INVALID_DEVICE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus() -> Vec<GpuConfig> {
        let uuids = ["GPU-aaaa0000-0", "GPU-aaaa1111-0", "GPU-bbbb0000-0"];
        uuids
            .map(|uuid| GpuConfig {
                uuid: uuid.to_owned(),
                ..GpuConfig::default()
            })
            .to_vec()
    }

    #[test]
    fn visible_devices_are_indices_or_unique_prefixes_up_to_the_first_wrong_one() {
        let visible = |list| visible(&gpus(), list);
        assert_eq!(visible(None), [0, 1, 2]);
        assert_eq!(visible(Some("2,0")), [2, 0]);
        assert_eq!(visible(Some("GPU-bbbb, 1")), [2, 1]);
        assert_eq!(visible(Some("0,9,1")), [0]);
        assert_eq!(visible(Some("0,-1,1")), [0]);
        assert_eq!(visible(Some("1,GPU-aaaa,2")), [1]);
        assert_eq!(visible(Some("1,1")), [0usize; 0]);
        assert_eq!(visible(Some("")), [0usize; 0]);
    }
}
