//! GPUs found, lost and sampled.

use aegis_common::event::{Gpu, GpuSample};
use aegis_common::id::{GpuIndex, JobId, Moment};

use super::core::Core;
use super::gpu::GpuState;

impl Core {
    /// The machine was counted: what is missing is lost, what came back must be sampled anew.
    pub(super) fn machine_found(&mut self, at: Moment, found: &[Gpu]) {
        for gpu in self.gpus.values_mut() {
            gpu.lost = true;
        }
        for info in found {
            let residents: Vec<JobId> = self
                .running
                .iter()
                .copied()
                .filter(|id| {
                    let job = self.jobs.get(id);
                    job.is_some_and(|job| job.hold(info.index).is_some())
                })
                .collect();
            match self.gpus.get_mut(&info.index) {
                Some(gpu) if gpu.info.uuid == info.uuid => {
                    gpu.info = info.clone();
                    gpu.lost = false;
                }
                _ => {
                    let mut gpu = GpuState::new(info.clone(), at);
                    gpu.residents = residents;
                    self.gpus.insert(info.index, gpu);
                }
            }
        }
        for gpu in self.gpus.values_mut().filter(|gpu| gpu.lost) {
            gpu.distrust_samples();
        }
    }

    /// Telemetry of one GPU.
    pub(super) fn sampled(&mut self, at: Moment, sample: &GpuSample) {
        let index = sample.gpu;
        let Some(gpu) = self.gpus.get_mut(&index) else {
            return;
        };
        let mut attributed = 0_u64;
        for id in &gpu.residents {
            let run = self.jobs.get_mut(id).and_then(|job| job.run.as_mut());
            let Some(run) = run else { continue };
            let used = run.used(index);
            let listed = sample.jobs.iter().find(|(job, _)| job == id);
            let listed = listed.map(|&(_, bytes)| bytes);
            attributed = attributed.saturating_add(listed.unwrap_or(0).max(used));
            // What NVML attributes to a job without the shim is all overhead.
            let Some(hold) = run.hold_mut(index) else {
                continue;
            };
            if let Some(bytes) = listed {
                hold.overhead.push(at, bytes.saturating_sub(used));
            }
            if sample.used.is_some() {
                hold.departed = 0;
            }
        }
        gpu.sample(at, sample, attributed, &self.policy);
    }

    /// A job left a GPU: what it held counts as used until a sample shows it free.
    pub(super) fn settle(&mut self, at: Moment, index: GpuIndex, job: JobId, held: u64) {
        let Some(gpu) = self.gpus.get_mut(&index) else {
            return;
        };
        gpu.residents.retain(|&resident| resident != job);
        gpu.changed = at;
        if gpu.used.is_some() {
            let held = gpu.bytes_of(job).max(held);
            gpu.settling = gpu.settling.saturating_add(held);
        }
    }
}
