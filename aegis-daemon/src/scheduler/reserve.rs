//! A head of the queue that starves gets named GPUs; they drain for it (contract C9).

use aegis_common::action::Action;
use aegis_common::id::{GpuIndex, JobId, Moment};
use serde::{Deserialize, Serialize};

use super::budget::Room;
use super::core::Core;
use super::facts::Facts;
use super::gate::Verdict;
use super::job::{Job, Stage};
use super::obstacle::fits;

/// GPUs kept for a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reservation {
    /// The job.
    pub(super) holder: JobId,
    /// As many as it needs.
    pub(super) gpus: Vec<GpuIndex>,
    /// Jobs that were there when it was made and still are.
    pub(super) residents: Vec<JobId>,
}

impl Core {
    /// Makes, keeps or drops the reservation, and clears its GPUs of fillers once the residents
    /// the head waited for are gone.
    pub(super) fn reserve(&mut self, at: Moment, out: &mut Vec<Action>) {
        self.refresh_reservation();
        if let Some(head) = self.starving_head(at)
            && self.reservation.as_ref().map(|kept| kept.holder) != Some(head)
            && let Some(gpus) = self.soonest_free(head, at)
        {
            let residents = gpus.iter().filter_map(|gpu| self.gpus.get(gpu));
            let mut residents: Vec<JobId> = residents
                .flat_map(|gpu| gpu.residents.iter().copied())
                .collect();
            residents.sort_unstable();
            residents.dedup();
            self.reservation = Some(Reservation {
                holder: head,
                gpus,
                residents,
            });
        }
        self.clear_fillers(at, out);
    }

    /// Whether the reservation does not bind a pending job.
    pub(super) fn is_unreserved(&self, id: JobId) -> bool {
        let Some(reservation) = &self.reservation else {
            return true;
        };
        let key = |id: JobId| {
            let job = self.jobs.get(&id)?;
            self.queue.key(job.ticket())
        };
        match (key(id), key(reservation.holder)) {
            (Some(this), Some(holder)) => this <= holder,
            _ => true,
        }
    }

    /// For whom a GPU is kept, and when the first resident that delays them must end; `None` for
    /// the latter once all are gone.
    pub(super) fn reserved(&self, gpu: GpuIndex) -> Option<(JobId, Option<Moment>)> {
        let reservation = self.reservation.as_ref()?;
        if !reservation.gpus.contains(&gpu) {
            return None;
        }
        let residents = reservation
            .residents
            .iter()
            .filter_map(|id| self.jobs.get(id));
        let end = residents.map(|job| self.ends_at(job)).min();
        Some((reservation.holder, end))
    }

    /// The head may get a reservation at that moment, if it has none yet.
    pub(super) fn reservation_due(&self) -> Option<Moment> {
        let head = self.feasible_head()?;
        let held = self.reservation.as_ref().map(|kept| kept.holder);
        let since = self.jobs.get(&head)?.pending_since;
        (held != Some(head)).then(|| since.plus_millis(self.policy.reserve_after_ms))
    }

    /// When a resident's time limit ends it; the end of time without one.
    fn ends_at(&self, job: &Job) -> Moment {
        let Some(limit_s) = job.resources.time_limit_s else {
            return Moment(u64::MAX);
        };
        let started = job.attempts.last().and_then(|attempt| attempt.started);
        let started = started.unwrap_or(self.now);
        started.plus_millis(limit_s.saturating_mul(1000))
    }

    /// The first pending job, if it has waited long enough.
    fn starving_head(&self, at: Moment) -> Option<JobId> {
        let head = self.feasible_head()?;
        let since = self.jobs.get(&head)?.pending_since;
        (at.millis_since(since) >= self.policy.reserve_after_ms).then_some(head)
    }

    /// The first pending job that this machine could run once its GPUs are free.
    fn feasible_head(&self) -> Option<JobId> {
        if self.queue.is_empty() {
            return None;
        }
        let feasible = |id: &JobId| {
            let demand = self.demand(*id);
            demand.is_some_and(|demand| {
                let hosts = self.hosts(&demand).count();
                u32::try_from(hosts).unwrap_or(u32::MAX) >= demand.gpus
            })
        };
        self.queue.order().into_iter().find(feasible)
    }

    /// GPUs that could take a job if no other job were there.
    fn hosts<'a>(
        &'a self,
        demand: &'a super::demand::Demand,
    ) -> impl Iterator<Item = GpuIndex> + 'a {
        let could = |gpu: &&super::gpu::GpuState| {
            let outside = gpu.outside(self.now);
            let need = demand.budget_on(gpu.info.memory, outside, &self.policy);
            let barred = !self.policy.share_with_foreign && !gpu.foreign.is_empty();
            !gpu.lost && !barred && need <= self.alone(gpu, demand.overhead)
        };
        self.gpus.values().filter(could).map(|gpu| gpu.info.index)
    }

    /// The GPUs that will be free for a job soonest, as many as it needs.
    fn soonest_free(&self, id: JobId, at: Moment) -> Option<Vec<GpuIndex>> {
        let mut demand = self.demand(id)?;
        demand.unreserved = true;
        let rank = |index: GpuIndex| {
            let gpu = self.gpus.get(&index)?;
            let facts: Facts = self.facts(gpu, at);
            let residents = gpu.residents.iter().filter_map(|id| self.jobs.get(id));
            let end = residents.map(|job| self.ends_at(job)).max();
            Some((
                !fits(&demand, &facts, &self.policy),
                end,
                facts.residents.len(),
                -facts.room,
                index,
            ))
        };
        let mut ranked: Vec<(bool, Option<Moment>, usize, Room, GpuIndex)> =
            self.hosts(&demand).filter_map(rank).collect();
        ranked.sort_unstable();
        let need = usize::try_from(demand.gpus).ok()?;
        let gpus: Vec<GpuIndex> = ranked.iter().take(need).map(|&(.., gpu)| gpu).collect();
        (gpus.len() == need).then_some(gpus)
    }

    /// Drops a reservation that no longer serves, and forgets residents that left.
    fn refresh_reservation(&mut self) {
        let Some(mut kept) = self.reservation.take() else {
            return;
        };
        let Some(demand) = self.demand(kept.holder) else {
            return;
        };
        let pending = self
            .jobs
            .get(&kept.holder)
            .is_some_and(|job| job.stage == Stage::Pending);
        let hosts: Vec<GpuIndex> = self.hosts(&demand).collect();
        if !pending || !kept.gpus.iter().all(|gpu| hosts.contains(gpu)) {
            return;
        }
        let here = |id: &JobId| {
            let job = self.jobs.get(id);
            job.is_some_and(|job| kept.gpus.iter().any(|&gpu| job.hold(gpu).is_some()))
        };
        kept.residents.retain(here);
        self.reservation = Some(kept);
    }

    /// Suspends the jobs that filled reserved GPUs, when only they keep the head waiting.
    fn clear_fillers(&mut self, at: Moment, out: &mut Vec<Action>) {
        let Some(kept) = self
            .reservation
            .clone()
            .filter(|kept| kept.residents.is_empty())
        else {
            return;
        };
        let Some(demand) = self.demand(kept.holder) else {
            return;
        };
        let facts = self.all_facts(at);
        if self.choose(&demand, &facts).is_some() || self.choose_settled(&demand, &facts).is_some()
        {
            return;
        }
        let priority = self
            .jobs
            .get(&kept.holder)
            .map(|job| job.resources.priority);
        for index in kept.gpus {
            let facts = facts.iter().find(|facts| facts.gpu == index);
            let Some((gpu, facts)) = self.gpus.get(&index).zip(facts) else {
                continue;
            };
            let need = demand.budget_on(facts.memory, facts.outside, &self.policy);
            // Its pressure without those who left is not known yet: the head may fit as it is.
            let undecided = matches!(facts.gate, Some(Verdict::Filling | Verdict::Stale(_)));
            if undecided || fits(&demand, facts, &self.policy) {
                continue;
            }
            // Who is ahead of the holder did not come as a filler.
            let fillers = self.evictable_residents(gpu).filter(|job| {
                job.suspendable(&self.policy) && Some(job.resources.priority) <= priority
            });
            let fillers: Vec<JobId> = fillers.map(|job| job.id).collect();
            for filler in fillers {
                self.evict(filler, kept.holder, index, need, out);
            }
        }
    }
}
