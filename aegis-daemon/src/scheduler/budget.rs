//! Who was promised what (contract C1, invariant 5).
//!
//! Per job and GPU a *budget*; per process and GPU a *sub-lease*, handed out of the budget. Two
//! sums must fit a GPU: what was promised (budgets) at each placement and raise of a budget, and
//! what was handed out (sub-leases) at each grant, each with overhead, unmanaged use and guard.

use aegis_common::id::{GpuIndex, JobId};

use super::core::Core;
use super::gpu::GpuState;
use super::job::{Hold, Run};

/// Bytes free for promises; negative: overdrawn by that much.
pub(super) type Room = i128;

impl Core {
    /// Bytes reserved for contexts and modules of a job's processes on a GPU.
    pub(super) fn overhead(&self, run: &Run, hold: &Hold) -> u64 {
        let reserve = self.policy.context_reserve;
        let lines = run
            .processes
            .iter()
            .filter_map(|process| process.line(hold.gpu));
        let processes = lines
            .filter(|line| line.touched)
            .map(|line| reserve.max(line.overhead.min(self.now).unwrap_or(0)))
            .fold(0, u64::saturating_add);
        let expected = if run.observation.observed() {
            reserve
        } else {
            hold.expected_overhead
        };
        processes
            .max(expected)
            .max(hold.overhead.min(self.now).unwrap_or(0))
    }

    /// Budget and overhead of a resident.
    pub(super) fn promise(&self, job: JobId, gpu: GpuIndex) -> u64 {
        self.hold_and(job, gpu, |run, hold| hold.budget.max(run.committed(gpu)))
    }

    /// Sub-leases and overhead of a resident.
    pub(super) fn handed_out(&self, job: JobId, gpu: GpuIndex) -> u64 {
        self.hold_and(job, gpu, |run, _| run.committed(gpu))
    }

    fn hold_and(&self, job: JobId, gpu: GpuIndex, part: impl Fn(&Run, &Hold) -> u64) -> u64 {
        let run = self.jobs.get(&job).and_then(|job| job.run.as_ref());
        let Some((run, hold)) = run.and_then(|run| Some((run, run.hold(gpu)?))) else {
            return 0;
        };
        part(run, hold).saturating_add(self.overhead(run, hold))
    }

    /// Σ promises to the residents.
    pub(super) fn promised(&self, gpu: &GpuState) -> u64 {
        let residents = gpu.residents.iter();
        residents
            .map(|&job| self.promise(job, gpu.info.index))
            .fold(0, u64::saturating_add)
    }

    /// Room for a placement or a larger budget.
    pub(super) fn room(&self, gpu: &GpuState) -> Room {
        self.capacity(gpu) - Room::from(self.promised(gpu))
    }

    /// Room for a larger sub-lease.
    pub(super) fn room_to_hand_out(&self, gpu: &GpuState) -> Room {
        let residents = gpu.residents.iter();
        let out = residents
            .map(|&job| self.handed_out(job, gpu.info.index))
            .fold(0, u64::saturating_add);
        self.capacity(gpu) - Room::from(out)
    }

    /// What jobs can be promised in all.
    fn capacity(&self, gpu: &GpuState) -> Room {
        Room::from(gpu.info.memory)
            - Room::from(self.kept_free(gpu))
            - Room::from(gpu.unmanaged(self.now))
    }

    /// Bytes kept free for growth nobody can deny. None where one job has the GPU to itself: only
    /// its own growth could need them.
    fn kept_free(&self, gpu: &GpuState) -> u64 {
        let alone = |id: &JobId| {
            let hold = self.jobs.get(id).and_then(|job| job.hold(gpu.info.index));
            hold.is_some_and(|hold| hold.exclusive)
        };
        match &gpu.residents[..] {
            [only] if gpu.foreign.is_empty() && alone(only) => 0,
            _ => gpu.guard(&self.policy),
        }
    }

    /// What one job can hold there without keeping others out.
    pub(super) fn alone(&self, gpu: &GpuState, overhead: u64) -> u64 {
        self.most(gpu, gpu.guard(&self.policy), overhead)
    }

    /// The most a resident can hold there if the others leave.
    pub(super) fn within_reach(&self, gpu: &GpuState, overhead: u64) -> u64 {
        self.most(gpu, self.kept_free(gpu), overhead)
    }

    /// What a job can hold there that keeps all others out.
    pub(super) fn exclusively(&self, gpu: &GpuState, overhead: u64) -> u64 {
        self.most(gpu, 0, overhead)
    }

    fn most(&self, gpu: &GpuState, kept_free: u64, overhead: u64) -> u64 {
        gpu.info
            .memory
            .saturating_sub(kept_free)
            .saturating_sub(gpu.outside(self.now))
            .saturating_sub(overhead)
    }

    /// A learned peak and its margin.
    pub(super) fn with_margin(&self, peak: u64) -> u64 {
        let share = u128::from(peak) * u128::from(self.policy.peak_margin_permille) / 1000;
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        peak.saturating_add(share.max(self.policy.lease_chunk))
    }

    /// Fits the budgets of a job that became steady to its peaks, so that others find room. A
    /// declared budget is kept, because the user knows of peaks still to come, and so is the floor
    /// of a job that already ran out of memory below it.
    pub(super) fn fit_budget(&mut self, id: JobId) {
        let Some((job, run)) = self.job_and_run(id) else {
            return;
        };
        let mut fitted: Vec<(GpuIndex, u64)> = Vec::new();
        for hold in run.holds.iter().filter(|hold| hold.cap.is_none()) {
            let least = run.committed(hold.gpu).max(job.floor.unwrap_or(0));
            let target = self.with_margin(hold.peak).max(least);
            let raise = target.saturating_sub(hold.budget);
            let gpu = self.gpus.get(&hold.gpu);
            let room = gpu.map_or(0, |gpu| self.room(gpu) - self.awaited(hold.gpu));
            if raise == 0 || Room::from(raise) <= room {
                fitted.push((hold.gpu, target));
            }
        }
        let run = self.jobs.get_mut(&id).and_then(|job| job.run.as_mut());
        let Some(run) = run else { return };
        for (gpu, budget) in fitted {
            if let Some(hold) = run.hold_mut(gpu) {
                hold.budget = budget;
            }
        }
    }
}
