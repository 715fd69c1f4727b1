//! Jobs come, start, and are told to stop.

use aegis_common::action::Action;
use aegis_common::id::{GpuIndex, JobId, Moment};
use aegis_common::job::{Outcome, Resources};
use aegis_common::learned::Learned;
use aegis_common::reason::StopReason;

use super::core::Core;
use super::job::{Hold, Job, Run, Stage};
use super::view::AttemptSummary;

impl Core {
    /// A job was accepted.
    pub(super) fn submitted(
        &mut self,
        at: Moment,
        id: JobId,
        uid: u32,
        resources: &Resources,
        learned: &Learned,
    ) {
        if self.jobs.contains_key(&id) {
            return;
        }
        let job = Job::new(id, uid, resources.clone(), learned.clone(), at);
        self.jobs.insert(id, job);
        self.enqueue(id, None);
    }

    /// The job shall end.
    pub(super) fn cancel_requested(
        &mut self,
        at: Moment,
        id: JobId,
        by: u32,
        out: &mut Vec<Action>,
    ) {
        let Some(job) = self.jobs.get(&id) else {
            return;
        };
        match &job.stage {
            Stage::Done { .. }
            | Stage::Stopping {
                why: StopReason::Cancelled { .. },
            } => {}
            Stage::Pending => self.finish(at, id, Outcome::Cancelled { by }, out),
            Stage::Starting | Stage::Running | Stage::Stopping { .. } => {
                self.stop(id, StopReason::Cancelled { by }, out);
            }
        }
    }

    /// Tells the attempt in progress to end.
    pub(super) fn stop(&mut self, id: JobId, why: StopReason, out: &mut Vec<Action>) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        let attempt = job.attempt();
        if let Some(last) = job.attempts.last_mut() {
            last.stopped = Some(why.clone());
        }
        job.stage = Stage::Stopping { why: why.clone() };
        out.push(Action::Stop {
            job: id,
            attempt,
            how: job.leaves_by(&why),
            why,
        });
    }

    /// Stops what ran longer than its limit.
    pub(super) fn stop_overdue(&mut self, at: Moment, out: &mut Vec<Action>) {
        if self.resuming {
            return;
        }
        let overdue = |id: &JobId| {
            let job = self.jobs.get(id)?;
            let limit_s = job.resources.time_limit_s?;
            let due = self.time_limit_of(job)?;
            (at >= due).then_some((*id, limit_s))
        };
        let overdue: Vec<(JobId, u64)> = self.running.iter().filter_map(overdue).collect();
        for (id, limit_s) in overdue {
            self.stop(id, StopReason::TimeLimit { limit_s }, out);
        }
    }

    /// When a running job's time limit passes, unless it is ending already.
    pub(super) fn time_limit_of(&self, job: &Job) -> Option<Moment> {
        let limit_s = job.resources.time_limit_s?;
        let started = job.attempts.last()?.started?;
        (job.stage == Stage::Running).then(|| started.plus_millis(limit_s.saturating_mul(1000)))
    }

    /// Gives a pending job its GPUs.
    pub(super) fn occupy(
        &mut self,
        at: Moment,
        id: JobId,
        attempt: u32,
        gpus: &[GpuIndex],
        stage: Stage,
    ) {
        let Some(demand) = self.demand(id) else {
            return;
        };
        let holds: Vec<Hold> = gpus
            .iter()
            .map(|&index| {
                let gpu = self.gpus.get(&index);
                let (memory, outside) =
                    gpu.map_or((0, 0), |gpu| (gpu.info.memory, gpu.outside(self.now)));
                let budget = demand.budget_on(memory, outside, &self.policy);
                Hold::new(index, budget, &demand)
            })
            .collect();
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        job.turn = self.queue.serve(job.ticket());
        job.run = Some(Run::new(holds, at));
        job.stage = stage;
        job.attempts
            .push(AttemptSummary::new(attempt, gpus.to_vec()));
        self.running.insert(id);
        for index in gpus {
            if let Some(gpu) = self.gpus.get_mut(index) {
                gpu.residents.push(id);
                gpu.changed = at;
            }
        }
    }

    /// The attempt's command runs: its record is right whatever the core remembers.
    pub(super) fn started(&mut self, at: Moment, id: JobId, attempt: u32, gpus: &[GpuIndex]) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        let over = job
            .attempts
            .iter()
            .any(|known| known.number >= attempt && known.ended.is_some());
        if matches!(job.stage, Stage::Done { .. }) || attempt < job.attempt() || over {
            return;
        }
        let known = job.run.is_some() && job.attempt() == attempt;
        if known
            && job
                .attempts
                .last()
                .is_some_and(|last| last.started.is_some())
        {
            return;
        }
        if !known || job.attempts.last().is_some_and(|last| last.gpus != gpus) {
            let stopping = match &job.stage {
                Stage::Stopping { why } if known => Some(why.clone()),
                _ => None,
            };
            let replaced = job
                .attempts
                .last()
                .is_some_and(|last| last.number == attempt);
            self.release(at, id);
            if let Some(job) = self.jobs.get_mut(&id)
                && replaced
            {
                job.attempts.pop();
            }
            let mut distinct = gpus.to_vec();
            distinct.sort_unstable();
            distinct.dedup();
            self.occupy(at, id, attempt, &distinct, Stage::Starting);
            if let (Some(why), Some(job)) = (stopping, self.jobs.get_mut(&id)) {
                job.stage = Stage::Stopping { why };
            }
        }
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        job.first_started.get_or_insert(at);
        if let Some(last) = job.attempts.last_mut() {
            last.started = Some(at);
            last.gpus = gpus.to_vec();
        }
        if job.stage == Stage::Starting {
            job.stage = Stage::Running;
        }
    }

    /// The command could not be started.
    pub(super) fn start_failed(
        &mut self,
        at: Moment,
        id: JobId,
        attempt: u32,
        error: &str,
        out: &mut Vec<Action>,
    ) {
        let Some(job) = self.current(id, attempt) else {
            return;
        };
        let outcome = match &job.stage {
            Stage::Stopping {
                why: StopReason::Cancelled { by },
            } => Outcome::Cancelled { by: *by },
            _ => Outcome::StartFailed {
                error: error.to_owned(),
            },
        };
        self.release(at, id);
        self.finish(at, id, outcome, out);
    }

    /// A job, if that attempt of it is in progress.
    pub(super) fn current(&self, id: JobId, attempt: u32) -> Option<&Job> {
        let (job, _) = self.job_and_run(id)?;
        (job.attempt() == attempt).then_some(job)
    }
}
