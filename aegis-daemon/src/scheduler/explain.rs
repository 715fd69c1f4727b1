//! The obstacles of pending jobs.

use std::cell::OnceCell;
use std::ops::ControlFlow;

use aegis_common::id::{JobId, Moment};
use aegis_common::reason::{BLOCKER_CODES, Blocker};

use super::core::Core;
use super::facts::Facts;
use super::job::Stage;
use super::obstacle::{fits, obstacles};

/// Explains any number of jobs at one moment: what it takes to know the GPUs is done once.
#[derive(Debug)]
pub struct Explainer<'core> {
    core: &'core Core,
    at: Moment,
    facts: Vec<Facts>,
    rehearsal: OnceCell<Rehearsal>,
}

/// What the next pass over the queue would do.
#[derive(Debug)]
struct Rehearsal {
    core: Core,
    /// Jobs that it starts, or for which it keeps a GPU: places in the queue and numbers, the
    /// head first.
    movers: Vec<(usize, JobId)>,
}

impl Core {
    /// Everything that keeps a pending job from starting at `at`, in the order of
    /// [`BLOCKER_CODES`]; empty for a job that is not pending, and for one that the next step
    /// starts.
    #[must_use]
    pub fn explain(&self, job: JobId, at: Moment) -> Vec<Blocker> {
        self.explainer(at).all(job)
    }

    /// What explains the jobs that are pending at `at`.
    #[must_use]
    pub fn explainer(&self, at: Moment) -> Explainer<'_> {
        let at = at.max(self.now);
        Explainer {
            core: self,
            at,
            facts: self.all_facts(at),
            rehearsal: OnceCell::new(),
        }
    }

    fn is_pending(&self, job: JobId) -> bool {
        let job = self.jobs.get(&job);
        job.is_some_and(|job| job.stage == Stage::Pending)
    }

    fn rehearse(&self, at: Moment) -> Rehearsal {
        let mut core = self.clone();
        core.journal_error = None;
        core.now = at;
        core.observe(at);
        let claimants = core.place(at, &mut Vec::new());
        let order = self.queue.order().into_iter().enumerate();
        let movers = order
            .filter(|(_, id)| !core.is_pending(*id) || claimants.contains(id))
            .collect();
        Rehearsal { core, movers }
    }
}

impl Explainer<'_> {
    /// See [`Core::explain`].
    #[must_use]
    pub fn all(&self, job: JobId) -> Vec<Blocker> {
        let mut blockers = Vec::new();
        self.each(job, &mut |blocker| blockers.push(blocker));
        blockers.sort_by_key(order);
        blockers
    }

    /// The first of [`Explainer::all`].
    #[must_use]
    pub fn first(&self, job: JobId) -> Option<Blocker> {
        let mut first: Option<(usize, Blocker)> = None;
        self.each(job, &mut |blocker| {
            let order = order(&blocker);
            if first.as_ref().is_none_or(|(least, _)| order < *least) {
                first = Some((order, blocker));
            }
        });
        first.map(|(_, blocker)| blocker)
    }

    fn each(&self, job: JobId, found: &mut impl FnMut(Blocker)) {
        let core = self.core;
        if !core.is_pending(job) {
            return;
        }
        let Some(demand) = core.demand(job) else {
            return;
        };
        if let Some(error) = core.journal_error.clone() {
            found(Blocker::JournalUnwritable { error });
        }
        let fitting = |facts: &&Facts| fits(&demand, facts, &core.policy);
        let fit = u32::try_from(self.facts.iter().filter(fitting).count()).unwrap_or(u32::MAX);
        if fit >= demand.gpus {
            if let Some(behind) = self.behind(job) {
                found(behind);
            }
            return;
        }
        if demand.gpus > 1 || self.facts.is_empty() {
            let need = demand.gpus;
            found(Blocker::NotEnoughGpus { need, fit });
        }
        for facts in &self.facts {
            let _all: ControlFlow<()> = obstacles(&demand, facts, &core.policy, &mut |blocker| {
                found(blocker);
                ControlFlow::Continue(())
            });
        }
    }

    /// Jobs ahead that will be placed first, if they leave this one no room.
    fn behind(&self, job: JobId) -> Option<Blocker> {
        let rehearsal = self.rehearsal.get_or_init(|| self.core.rehearse(self.at));
        if !rehearsal.core.is_pending(job) {
            return None;
        }
        let place = self.core.queue.ahead(self.core.jobs.get(&job)?.ticket())?;
        let ahead = rehearsal.movers.partition_point(|&(at, _)| at < place);
        let &(_, next) = rehearsal.movers.first().filter(|_| ahead > 0)?;
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        Some(Blocker::Behind { ahead, next })
    }
}

/// Where a blocker stands among others of the same job.
fn order(blocker: &Blocker) -> usize {
    let code = blocker.code();
    let place = BLOCKER_CODES.iter().position(|&listed| listed == code);
    place.unwrap_or(BLOCKER_CODES.len())
}
