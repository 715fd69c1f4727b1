//! Jobs come, start, end, are cancelled and retried.

use aegis_common::action::Action;
use aegis_common::id::{GpuIndex, JobId, Moment};
use aegis_common::job::{Exit, Outcome, Resources};
use aegis_common::reason::{RetryReason, StopReason};

use super::core::Core;
use super::demand::Demand;
use super::job::{Hold, Job, Run, Stage};
use super::recover::{OutOfMemory, next_attempt};
use super::view::AttemptSummary;

impl Core {
    /// A job was accepted.
    pub(super) fn submitted(&mut self, at: Moment, id: JobId, uid: u32, resources: &Resources) {
        if self.jobs.contains_key(&id) {
            return;
        }
        self.queue.insert(resources.priority, uid, id, None);
        self.jobs
            .insert(id, Job::new(id, uid, resources.clone(), at));
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
            why,
        });
    }

    /// Stops what ran longer than its limit.
    pub(super) fn stop_overdue(&mut self, at: Moment, out: &mut Vec<Action>) {
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
        let policy = &self.policy;
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        let demand = Demand::new(job, policy, false);
        let holds: Vec<Hold> = gpus
            .iter()
            .map(|&gpu| {
                let memory = self.gpus.get(&gpu).map_or(0, |gpu| gpu.info.memory);
                Hold::new(gpu, demand.budget_on(memory, policy), &demand)
            })
            .collect();
        job.turn = self.queue.serve(job.resources.priority, job.uid, id);
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
        if matches!(job.stage, Stage::Done { .. }) || attempt < job.attempt() {
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

    /// The attempt's processes are gone.
    pub(super) fn ended(
        &mut self,
        at: Moment,
        id: JobId,
        attempt: u32,
        exit: Exit,
        out: &mut Vec<Action>,
    ) {
        if self.current(id, attempt).is_none() {
            return;
        }
        self.deny_waiting(id, None, &aegis_common::reason::Denial::NotHeld, out);
        let refusal = self.worst_refusal(id);
        if let Some(last) = self
            .jobs
            .get_mut(&id)
            .and_then(|job| job.attempts.last_mut())
        {
            last.exit = Some(exit);
        }
        let Some(job) = self.jobs.get(&id) else {
            return;
        };
        let stopped = match &job.stage {
            Stage::Stopping { why } => Some(why.clone()),
            _ => None,
        };
        match stopped {
            Some(StopReason::Cancelled { by }) => {
                self.release(at, id);
                self.finish(at, id, Outcome::Cancelled { by }, out);
            }
            Some(StopReason::TimeLimit { .. }) => {
                self.release(at, id);
                self.finish(at, id, Outcome::Timeout, out);
            }
            Some(StopReason::Evicted { job: older, .. }) => {
                self.yielded(at, id, RetryReason::Evicted { job: older }, out);
            }
            Some(StopReason::Rescue { .. }) => self.yielded(at, id, RetryReason::Rescue, out),
            None => match (exit, refusal) {
                (Exit::Unknown, _) => {
                    self.release(at, id);
                    self.finish(at, id, Outcome::Lost, out);
                }
                (Exit::Code(0), _) => {
                    self.release(at, id);
                    self.finish(at, id, Outcome::Ok, out);
                }
                (_, None) => {
                    self.release(at, id);
                    self.finish(at, id, Outcome::Failed { exit }, out);
                }
                (_, Some((gpu, request))) => self.out_of_memory(at, id, gpu, request, exit, out),
            },
        }
    }

    /// A job that was stopped for others is pending again, with what it was seen to need.
    fn yielded(&mut self, at: Moment, id: JobId, why: RetryReason, out: &mut Vec<Action>) {
        let peaks: Vec<u64> = self
            .job_and_run(id)
            .into_iter()
            .flat_map(|(_, run)| &run.holds)
            .filter(|hold| hold.cap.is_none() && hold.peak > 0)
            .filter_map(|hold| {
                let gpu = self.gpus.get(&hold.gpu)?;
                let most = self.alone(gpu, self.policy.context_reserve);
                Some(self.with_margin(hold.peak).min(most))
            })
            .collect();
        self.release(at, id);
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        job.evictions = job.evictions.saturating_add(1);
        job.floor = job.floor.max(peaks.into_iter().max());
        self.requeue(at, id, why, out);
    }

    /// An attempt ran out of memory: the ladder, or the end.
    fn out_of_memory(
        &mut self,
        at: Moment,
        id: JobId,
        gpu: GpuIndex,
        request: u64,
        exit: Exit,
        out: &mut Vec<Action>,
    ) {
        let Some((job, run)) = self.job_and_run(id) else {
            return;
        };
        let Some(hold) = run.hold(gpu) else { return };
        let state = self.gpus.get(&gpu);
        let capacity = state.map_or(0, |state| self.alone(state, self.overhead(run, hold)));
        let peak = hold.peak;
        let needed = peak.saturating_add(request);
        let capped = hold.cap.is_some_and(|cap| needed > cap && cap < capacity);
        let next = next_attempt(OutOfMemory {
            peak,
            request,
            wanted: self.with_margin(needed),
            previous: job.floor.unwrap_or(0).max(hold.start_budget),
            memory: state.map_or(0, |state| state.info.memory),
            capacity,
            was_alone: hold.exclusive && !capped,
            retries_left: job.retries_used < job.resources.retries,
        });
        self.release(at, id);
        let next = match next {
            Ok(next) => next,
            Err(why) => return self.finish(at, id, Outcome::Oom { exit, why }, out),
        };
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        job.retries_used = job.retries_used.saturating_add(1);
        let floor = next.floor.max(job.floor.unwrap_or(0));
        job.floor = Some(floor);
        job.next_exclusive |= next.exclusive;
        let why = RetryReason::Oom {
            gpu,
            request,
            peak,
            floor,
            exclusive: job.next_exclusive,
        };
        self.requeue(at, id, why, out);
    }

    /// The refusal that nothing recovered from, on the GPU where most would have been needed.
    fn worst_refusal(&self, id: JobId) -> Option<(GpuIndex, u64)> {
        let (_, run) = self.job_and_run(id)?;
        let living = run
            .processes
            .iter()
            .flat_map(|process| &process.lines)
            .filter_map(|line| Some((line.gpu, line.refusal?)));
        let gone = run.refusals.iter().copied();
        gone.chain(living).max_by_key(|&(gpu, request)| {
            let peak = run.hold(gpu).map_or(0, |hold| hold.peak);
            peak.saturating_add(request)
        })
    }

    fn requeue(&mut self, at: Moment, id: JobId, why: RetryReason, out: &mut Vec<Action>) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        if let Some(last) = job.attempts.last_mut() {
            last.retried = Some(why.clone());
        }
        job.stage = Stage::Pending;
        job.pending_since = at;
        self.queue
            .insert(job.resources.priority, job.uid, id, Some(job.turn));
        out.push(Action::Retry {
            job: id,
            attempt: job.attempt().saturating_add(1),
            why,
        });
    }

    /// The attempt in progress no longer holds anything.
    fn release(&mut self, at: Moment, id: JobId) {
        let Some((_, run)) = self.job_and_run(id) else {
            return;
        };
        let held: Vec<(GpuIndex, u64, u64)> = run
            .holds
            .iter()
            .map(|hold| {
                let used = run.used(hold.gpu).saturating_add(hold.departed);
                (hold.gpu, used, self.overhead(run, hold))
            })
            .collect();
        self.running.remove(&id);
        if let Some(job) = self.jobs.get_mut(&id) {
            // Who was never bounded cannot share.
            job.next_exclusive |= job.run.as_ref().is_some_and(Run::uninstrumented);
            job.run = None;
            if let Some(last) = job.attempts.last_mut() {
                last.ended = Some(at);
            }
            let overhead = held.iter().map(|&(_, _, overhead)| overhead).max();
            job.overhead_seen = overhead.unwrap_or(0);
        }
        for (gpu, used, _) in held {
            self.settle(at, gpu, id, used);
        }
    }

    fn finish(&mut self, at: Moment, id: JobId, outcome: Outcome, out: &mut Vec<Action>) {
        if let Some(job) = self.jobs.get_mut(&id) {
            self.queue.remove(job.resources.priority, job.uid, id);
            job.stage = Stage::Done {
                outcome: outcome.clone(),
            };
            job.ended = Some(at);
        }
        out.push(Action::Finish { job: id, outcome });
    }

    /// A job, if that attempt of it is in progress.
    fn current(&self, id: JobId, attempt: u32) -> Option<&Job> {
        let (job, _) = self.job_and_run(id)?;
        (job.attempt() == attempt).then_some(job)
    }
}
