//! Who made an attempt end.

use aegis_common::id::JobId;
use aegis_common::reason::StopReason;

use super::{Machine, place_of};
use crate::replay::outcome::Hurt;

impl Machine<'_> {
    /// First start and place: smaller is older. A job that never ran is younger than all others.
    fn seniority(&self, job: usize) -> (u64, usize) {
        let started = self.jobs.get(job).and_then(|job| job.first_started);
        (started.unwrap_or(u64::MAX), job)
    }

    fn is_younger(&self, other: usize, than: usize) -> bool {
        self.seniority(other) > self.seniority(than)
    }

    /// An attempt of `job` ended for that other job.
    pub(super) fn because_of(&self, job: usize, other: JobId) -> Hurt {
        if self.is_younger(place_of(other), job) {
            Hurt::ByYounger
        } else {
            Hurt::ByOlder
        }
    }

    /// An attempt was stopped.
    pub(super) fn stopped_for(&self, job: usize, why: &StopReason) -> Hurt {
        match why {
            StopReason::Cancelled { .. } | StopReason::TimeLimit { .. } => Hurt::No,
            StopReason::Evicted { job: older, .. } => self.because_of(job, *older),
            _ => self.among_others(job),
        }
    }

    /// An attempt lost its place to whoever is on its GPUs.
    fn among_others(&self, job: usize) -> Hurt {
        let gpus = self
            .attempt(job)
            .into_iter()
            .flat_map(|attempt| &attempt.gpus);
        let residents = gpus.filter_map(|share| self.gpus.get(share.gpu));
        let others = residents.flat_map(|gpu| &gpu.residents);
        let others = others.filter(|&&other| other != job);
        others.fold(Hurt::No, |hurt, &other| {
            let by_this = if self.is_younger(other, job) {
                Hurt::ByYounger
            } else {
                Hurt::ByOlder
            };
            hurt.max(by_this)
        })
    }

    /// An attempt did not get memory on one of its GPUs: nobody's fault if it would not have got
    /// it alone; the younger ones' if it would have without them; else the older ones'.
    pub(super) fn crowded_out(&self, job: usize, index: usize, bytes: u64) -> Hurt {
        let share = self
            .attempt(job)
            .and_then(|attempt| attempt.gpus.get(index));
        let Some(share) = share else { return Hurt::No };
        let Some(gpu) = self.gpus.get(share.gpu) else {
            return Hurt::No;
        };
        let held_by = |other: usize| {
            let attempt = self.attempt(other);
            let shares = attempt.into_iter().flat_map(|attempt| &attempt.gpus);
            let there = shares.filter(|other| other.gpu == share.gpu);
            there.map(|share| share.held + share.context).sum::<u64>()
        };
        let others = || gpu.residents.iter().copied().filter(|&other| other != job);
        let own = share
            .held
            .saturating_add(share.context)
            .saturating_add(bytes);
        if others().next().is_none() || own > self.usable() {
            return Hurt::No;
        }
        let older: u64 = others()
            .filter(|&other| !self.is_younger(other, job))
            .map(held_by)
            .sum();
        let any_younger = others().any(|other| self.is_younger(other, job));
        if any_younger && own.saturating_add(older) <= self.usable() {
            Hurt::ByYounger
        } else {
            Hurt::ByOlder
        }
    }
}
