//! Attempts end: the job is over, or pending again.

use aegis_common::action::Action;
use aegis_common::id::{GpuIndex, JobId, Moment};
use aegis_common::job::{Exit, Outcome};
use aegis_common::reason::{Denial, RetryReason, StopReason};

use super::core::Core;
use super::job::{Run, Stage};
use super::recover::{OutOfMemory, next_attempt};

impl Core {
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
        self.deny_waiting(id, None, &Denial::NotHeld, out);
        let refusal = self.worst_refusal(id);
        if let Some(last) = self
            .jobs
            .get_mut(&id)
            .and_then(|job| job.attempts.last_mut())
        {
            last.exit = Some(exit);
        }
        self.learn(at, id, exit, refusal.is_some(), out);
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
            retries_left: job.resources.retries.saturating_sub(job.retries_used),
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
        let attempt = job.attempt().saturating_add(1);
        let turn = job.turn;
        self.enqueue(id, Some(turn));
        out.push(Action::Retry {
            job: id,
            attempt,
            why,
        });
    }

    /// The attempt in progress no longer holds anything.
    pub(super) fn release(&mut self, at: Moment, id: JobId) {
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

    pub(super) fn finish(
        &mut self,
        at: Moment,
        id: JobId,
        outcome: Outcome,
        out: &mut Vec<Action>,
    ) {
        if let Some(job) = self.jobs.get_mut(&id) {
            self.queue.remove(job.ticket());
            job.stage = Stage::Done {
                outcome: outcome.clone(),
            };
            job.ended = Some(at);
        }
        out.push(Action::Finish { job: id, outcome });
    }
}
