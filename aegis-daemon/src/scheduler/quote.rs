//! Whether and how a request for a larger sub-lease can be granted.

use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use aegis_common::reason::Denial;
use serde::{Deserialize, Serialize};

use super::budget::Room;
use super::core::Core;

/// A request for a larger sub-lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ask {
    pub(super) request: u64,
    pub(super) job: JobId,
    pub(super) process: ProcessKey,
    pub(super) gpu: GpuIndex,
    /// Bytes of the allocation.
    pub(super) bytes: u64,
    /// Bytes the process would hold with it.
    pub(super) held: u64,
    /// When it came.
    pub(super) since: Moment,
    /// When a waiting one is denied.
    pub(super) deadline: Moment,
}

/// What granting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    /// The process's new limit.
    pub(super) limit: u64,
    /// The job's new budget.
    pub(super) budget: u64,
}

/// Why it cannot be granted now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// Nor ever.
    Final(Denial),
    /// That much room is missing.
    Short { by: Room, denial: Denial },
}

impl Core {
    /// Whether and how `ask` can be granted now.
    pub(super) fn quote(&self, ask: &Ask) -> Result<Grant, Obstacle> {
        let not_held = || Obstacle::Final(Denial::NotHeld);
        let (_, run) = self.job_and_run(ask.job).ok_or_else(not_held)?;
        let gpu = self.gpus.get(&ask.gpu).ok_or_else(not_held)?;
        let hold = run.hold(ask.gpu).ok_or_else(not_held)?;
        let process = run.process(ask.process).ok_or_else(not_held)?;
        let line = process.line(ask.gpu).ok_or_else(not_held)?;
        if ask.held <= line.sublease {
            return Ok(Grant {
                limit: line.sublease,
                budget: hold.budget,
            });
        }
        let committed = run.committed(ask.gpu);
        let others = committed.saturating_sub(line.charge());
        let held = others.saturating_add(ask.held);
        if let Some(declared) = hold.cap.filter(|&declared| held > declared) {
            return Err(Obstacle::Final(Denial::BeyondDeclared { held, declared }));
        }
        let capacity = self.within_reach(gpu, self.overhead(run, hold));
        if held > capacity {
            return Err(Obstacle::Final(Denial::ExceedsCapacity { held, capacity }));
        }
        let room = self.room(gpu);
        let room_for_budget = room - self.awaited_by_older(ask);
        let room_to_hand_out = self.room_to_hand_out(gpu);
        let promised = hold.budget.max(committed);
        // A whole chunk saves round trips; exactly what is asked for does as well.
        let chunk = ask.bytes.max(self.policy.lease_chunk);
        let generous = line.sublease.saturating_add(chunk).max(ask.held);
        let most = hold
            .cap
            .unwrap_or(capacity)
            .min(capacity)
            .saturating_sub(others);
        let mut missing = 0;
        for limit in [generous.min(most).max(ask.held), ask.held] {
            let total = others.saturating_add(limit);
            let raise = Room::from(total.saturating_sub(promised));
            let more = Room::from(limit.saturating_sub(line.charge()));
            missing = if raise > 0 {
                raise - room_for_budget
            } else {
                more - room_to_hand_out
            };
            if missing <= 0 || (raise == 0 && more == 0) {
                return Ok(Grant {
                    limit,
                    budget: hold.budget.max(total),
                });
            }
        }
        let raise = held.saturating_sub(promised);
        let denial = if room < 0 || raise == 0 {
            Denial::Overdraft
        } else {
            Denial::NoRoom {
                request: raise,
                available: u64::try_from(room_for_budget).unwrap_or(0),
            }
        };
        Err(Obstacle::Short {
            by: missing,
            denial,
        })
    }

    /// Bytes by which the waiting requests on a GPU exceed their jobs' budgets: room that must not
    /// be given to anybody else.
    pub(super) fn awaited(&self, gpu: GpuIndex) -> Room {
        let waiting = self.waiting.iter().filter(|ask| ask.gpu == gpu);
        waiting.map(|ask| self.raise(ask)).sum()
    }

    /// The same for requests of jobs older than this one's.
    fn awaited_by_older(&self, ask: &Ask) -> Room {
        let Some(job) = self.jobs.get(&ask.job) else {
            return 0;
        };
        let older = |other: &&Ask| {
            other.gpu == ask.gpu
                && self
                    .jobs
                    .get(&other.job)
                    .is_some_and(|other| other.seniority() < job.seniority())
        };
        let waiting = self.waiting.iter().filter(older);
        waiting.map(|other| self.raise(other)).sum()
    }

    /// Bytes by which granting would raise the job's budget.
    fn raise(&self, ask: &Ask) -> Room {
        let Some((_, run)) = self.job_and_run(ask.job) else {
            return 0;
        };
        let (Some(hold), Some(process)) = (run.hold(ask.gpu), run.process(ask.process)) else {
            return 0;
        };
        let committed = run.committed(ask.gpu);
        let charge = process.line(ask.gpu).map_or(0, |line| line.charge());
        let total = committed.saturating_sub(charge).saturating_add(ask.held);
        Room::from(total.saturating_sub(hold.budget.max(committed)))
    }
}
