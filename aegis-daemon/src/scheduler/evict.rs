//! Who yields: eviction for an older job's growth (contract C4) and rescue from an overdraft.

use aegis_common::action::Action;
use aegis_common::id::{GpuIndex, JobId};
use aegis_common::reason::{Denial, StopReason};

use super::budget::Room;
use super::core::Core;
use super::gpu::GpuState;
use super::job::{Job, Stage};
use super::quote::Ask;

impl Core {
    /// Stops the least deserving younger residents whose promises cover what `ask` is short of;
    /// nobody if all of them together would not.
    pub(super) fn make_room(&mut self, ask: &Ask, short_by: Room, out: &mut Vec<Action>) {
        let Some(requester) = self.jobs.get(&ask.job) else {
            return;
        };
        let Some(gpu) = self.gpus.get(&ask.gpu) else {
            return;
        };
        let mut missing = short_by - self.coming(gpu);
        if missing <= 0 {
            return;
        }
        let younger = |job: &&Job| job.seniority() > requester.seniority();
        let mut candidates: Vec<&Job> = self.evictable_residents(gpu).filter(younger).collect();
        candidates.sort_by_key(|job| (job.resources.priority, std::cmp::Reverse(job.seniority())));
        let mut victims: Vec<(JobId, Room)> = Vec::new();
        for job in candidates {
            if missing <= 0 {
                break;
            }
            let freed = Room::from(self.promise(job.id, ask.gpu));
            missing -= freed;
            victims.push((job.id, freed));
        }
        if missing > 0 {
            return;
        }
        // A small first victim may be spared once a larger one follows.
        let mut spare = -missing;
        victims.retain(|&(_, freed)| {
            let keep = freed > spare;
            if !keep {
                spare -= freed;
            }
            keep
        });
        for (victim, _) in victims {
            self.evict(victim, ask.job, ask.gpu, ask.bytes, out);
        }
    }

    /// Stops a job so that `older` finds room; its own waiting requests are answered first.
    pub(super) fn evict(
        &mut self,
        victim: JobId,
        older: JobId,
        gpu: GpuIndex,
        bytes: u64,
        out: &mut Vec<Action>,
    ) {
        self.deny_waiting(victim, None, &Denial::BeingEvicted { job: older }, out);
        let why = StopReason::Evicted {
            job: older,
            gpu,
            bytes,
        };
        self.stop(victim, why, out);
    }

    /// Room that is coming without stopping anybody else.
    fn coming(&self, gpu: &GpuState) -> Room {
        let stopping = gpu.residents.iter().filter(|id| {
            let job = self.jobs.get(id);
            job.is_some_and(|job| matches!(job.stage, Stage::Stopping { .. }))
        });
        let promised: Room = stopping
            .map(|&id| Room::from(self.promise(id, gpu.info.index)))
            .sum();
        promised + Room::from(gpu.settling)
    }

    /// Residents that may be stopped for others.
    pub(super) fn evictable_residents<'a>(
        &'a self,
        gpu: &'a GpuState,
    ) -> impl Iterator<Item = &'a Job> {
        let residents = gpu.residents.iter().filter_map(|id| self.jobs.get(id));
        residents.filter(|job| job.stoppable() && job.evictable(&self.policy))
    }

    /// Stops the youngest evictable resident, never the oldest one, of a GPU on which memory
    /// nobody can deny has all but used up the guard.
    pub(super) fn rescue(&mut self, index: GpuIndex, out: &mut Vec<Action>) {
        let Some(gpu) = self.gpus.get(&index) else {
            return;
        };
        let Some(used) = gpu.used else { return };
        let free = gpu.info.memory.saturating_sub(used);
        let room = self.room(gpu);
        let relief_is_coming = gpu.settling > 0
            || gpu.residents.iter().any(|id| {
                let job = self.jobs.get(id);
                job.is_some_and(|job| matches!(job.stage, Stage::Stopping { .. }))
            });
        if free >= gpu.guard(&self.policy) / 2 || room >= 0 || relief_is_coming {
            return;
        }
        let residents = gpu.residents.iter().filter_map(|id| self.jobs.get(id));
        let oldest = residents.map(Job::seniority).min();
        let youngest = self
            .evictable_residents(gpu)
            .filter(|job| Some(job.seniority()) != oldest)
            .max_by_key(|job| job.seniority());
        let Some(victim) = youngest.map(|job| job.id) else {
            return;
        };
        self.deny_waiting(victim, None, &Denial::Overdraft, out);
        let why = StopReason::Rescue {
            gpu: index,
            over: u64::try_from(-room).unwrap_or(u64::MAX),
        };
        self.stop(victim, why, out);
    }
}
