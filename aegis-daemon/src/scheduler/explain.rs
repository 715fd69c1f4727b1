//! All obstacles of a pending job.

use std::ops::ControlFlow;

use aegis_common::id::{JobId, Moment};
use aegis_common::reason::{BLOCKER_CODES, Blocker};

use super::core::Core;
use super::facts::Facts;
use super::job::Stage;
use super::obstacle::{fits, obstacles};

impl Core {
    /// Everything that keeps a pending job from starting at `at`, in the order of
    /// [`BLOCKER_CODES`]; empty for a job that is not pending, and for one that the next step
    /// starts.
    #[must_use]
    pub fn explain(&self, job: JobId, at: Moment) -> Vec<Blocker> {
        let at = at.max(self.now);
        let pending = self
            .jobs
            .get(&job)
            .is_some_and(|job| job.stage == Stage::Pending);
        let Some(demand) = self.demand(job).filter(|_| pending) else {
            return Vec::new();
        };
        let mut blockers = Vec::new();
        if let Some(error) = self.journal_error.clone() {
            blockers.push(Blocker::JournalUnwritable { error });
        }
        let facts = self.all_facts(at);
        let fitting = |facts: &&Facts| fits(&demand, facts, &self.policy);
        let fit = u32::try_from(facts.iter().filter(fitting).count()).unwrap_or(u32::MAX);
        if fit >= demand.gpus {
            blockers.extend(self.behind(job, at));
        } else {
            if demand.gpus > 1 || facts.is_empty() {
                let need = demand.gpus;
                blockers.push(Blocker::NotEnoughGpus { need, fit });
            }
            for facts in &facts {
                let _all: ControlFlow<()> =
                    obstacles(&demand, facts, &self.policy, &mut |blocker| {
                        blockers.push(blocker);
                        ControlFlow::Continue(())
                    });
            }
        }
        blockers.sort_by_key(|blocker| {
            let code = blocker.code();
            BLOCKER_CODES.iter().position(|&listed| listed == code)
        });
        blockers
    }

    /// Jobs ahead that will be placed first, if they leave this one no room.
    fn behind(&self, job: JobId, at: Moment) -> Option<Blocker> {
        let mut rehearsal = self.clone();
        rehearsal.journal_error = None;
        rehearsal.now = at;
        rehearsal.observe(at);
        let claimants = rehearsal.place(at, &mut Vec::new());
        if !rehearsal.is_pending(job) {
            return None;
        }
        let order = self.queue.order();
        let ahead = order.iter().take_while(|&&id| id != job);
        let mut first = ahead.filter(|&&id| !rehearsal.is_pending(id) || claimants.contains(&id));
        let next = *first.next()?;
        let others = u32::try_from(first.count()).unwrap_or(u32::MAX);
        Some(Blocker::Behind {
            ahead: others.saturating_add(1),
            next,
        })
    }

    fn is_pending(&self, job: JobId) -> bool {
        let job = self.jobs.get(&job);
        job.is_some_and(|job| job.stage == Stage::Pending)
    }
}
