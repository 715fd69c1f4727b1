//! Processes on a GPU: memory, and SM time since the last look.

use std::collections::BTreeMap;

use simgpu_core::usage::{ProcessGpuUsage, ProcessUsage};
use simgpu_core::{Machine, now_ns};

use crate::code::Result;
use crate::library::Device;

/// New utilisation samples appear at most this often.
const SAMPLE_NS: u64 = 100_000_000;

/// A process with its device memory on one GPU.
#[derive(Clone, Copy)]
pub(crate) struct Listed {
    pub(crate) pid: u32,
    pub(crate) bytes: u64,
}

/// Utilisation of one process over the last period.
#[derive(Clone, Copy)]
pub(crate) struct Utilization {
    pub(crate) pid: u32,
    pub(crate) time_us: u64,
    /// Per cent.
    pub(crate) sm: u32,
    /// Per cent.
    pub(crate) memory: u32,
}

fn on_gpu(process: &ProcessUsage, gpu: usize) -> Option<&ProcessGpuUsage> {
    process.gpus.iter().find(|u| u.gpu == gpu && u.bytes() > 0)
}

/// Processes with a context on the GPU (or foreign memory), oldest first.
pub(crate) fn list(device: &Device) -> Vec<Listed> {
    let processes = device.machine.processes();
    let listed = processes.iter().filter_map(|p| {
        on_gpu(p, device.gpu).map(|u| Listed {
            pid: p.pid,
            bytes: u.bytes(),
        })
    });
    listed.collect()
}

/// Sums of a process when last looked at.
#[derive(Clone, Copy, Default)]
struct Sums {
    sm: u64,
    dram: u64,
}

struct Baseline {
    at_ns: u64,
    sums: BTreeMap<(u32, u64), Sums>,
    latest: Vec<Utilization>,
}

/// What process utilisation is counted from, by GPU.
pub(crate) struct Baselines(BTreeMap<usize, Baseline>);

impl Baselines {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Starts counting now.
    pub(crate) fn take(&mut self, machine: &Machine) {
        let processes = machine.timeline().processes;
        for gpu in 0..machine.config().gpus.len() {
            let sums = sums(&processes, gpu);
            self.0.insert(
                gpu,
                Baseline {
                    at_ns: now_ns(),
                    sums,
                    latest: Vec::new(),
                },
            );
        }
    }

    /// Samples newer than `last_seen_us`.
    pub(crate) fn since(&mut self, device: &Device, last_seen_us: u64) -> Result<Vec<Utilization>> {
        let now = now_ns();
        let fresh = Baseline {
            at_ns: now,
            sums: BTreeMap::new(),
            latest: Vec::new(),
        };
        let baseline = self.0.entry(device.gpu).or_insert(fresh);
        let length = now.saturating_sub(baseline.at_ns);
        if length >= SAMPLE_NS {
            let processes = device.machine.processes();
            let present = sums(&processes, device.gpu);
            let part = |now: u64, before: u64| {
                let permille = now.saturating_sub(before) as f64 / length as f64;
                (permille / 10.0).round().min(100.0) as u32
            };
            let before = |key| baseline.sums.get(key).copied().unwrap_or_default();
            baseline.latest = present
                .iter()
                .filter(|(key, sums)| sums.sm > before(key).sm || sums.dram > before(key).dram)
                .map(|(key, sums)| Utilization {
                    pid: key.0,
                    time_us: now / 1000,
                    sm: part(sums.sm, before(key).sm),
                    memory: part(sums.dram, before(key).dram),
                })
                .collect();
            (baseline.at_ns, baseline.sums) = (now, present);
        }
        Ok(baseline
            .latest
            .iter()
            .filter(|u| u.time_us > last_seen_us)
            .copied()
            .collect())
    }
}

fn sums(processes: &[ProcessUsage], gpu: usize) -> BTreeMap<(u32, u64), Sums> {
    let of_gpu = processes.iter().filter_map(|p| {
        let usage = p.gpus.iter().find(|u| u.gpu == gpu)?;
        Some((
            (p.pid, p.start_time),
            Sums {
                sm: usage.sm_active,
                dram: usage.dram_active,
            },
        ))
    });
    of_gpu.collect()
}
