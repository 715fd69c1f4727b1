//! An attempt's life: its command starts, its plan advances, it ends.

use aegis_common::event::Event;
use aegis_common::id::GpuIndex;
use aegis_common::job::Exit;

use super::clock::Timer;
use super::job::{Attempt, JobStage, Leaving, Stage};
use super::plan::{Step, plan};
use super::{Machine, id_of};
use crate::replay::number::whole;
use crate::replay::outcome::{AttemptEnd, AttemptOutcome, Hurt};

impl Machine<'_> {
    /// The attempt in progress.
    pub(super) fn attempt(&self, job: usize) -> Option<&Attempt> {
        self.jobs.get(job)?.attempt.as_ref()
    }

    /// The attempt in progress.
    pub(super) fn attempt_mut(&mut self, job: usize) -> Option<&mut Attempt> {
        self.jobs.get_mut(job)?.attempt.as_mut()
    }

    /// Time alone brings it forward.
    pub(super) fn is_advancing(&self, job: usize) -> bool {
        self.attempt(job)
            .is_some_and(|attempt| attempt.stage != Stage::Waiting)
    }

    /// The command starts to run.
    pub(super) fn launched(&mut self, job: usize, number: u32) {
        let (now, restore_ms) = (self.now, self.config.restore_ms);
        let (Some(workload), Some(trace_job)) = (self.workload(job), self.trace.jobs.get(job))
        else {
            return;
        };
        let solo_s = self.trace.solo_s(trace_job);
        let Some(state) = self.jobs.get_mut(job) else {
            return;
        };
        let saved_s = state.saved_s;
        let Some(attempt) = state.attempt.as_mut() else {
            return;
        };
        if attempt.number != number || attempt.stage != Stage::Launching {
            return;
        }
        let restore_ms = if saved_s > 0.0 { restore_ms } else { 0 };
        (attempt.plan, attempt.launch_at) = plan(workload, solo_s, saved_s, restore_ms);
        attempt.resumed_s = saved_s;
        attempt.stage = Stage::Running;
        attempt.started = now;
        attempt.settled = now;
        state.first_started.get_or_insert(now);
        let gpus = attempt.gpus.iter().map(|share| index_of(share.gpu));
        let gpus = gpus.collect();
        self.dirty = true;
        self.outbox.push_back(Event::Started {
            job: id_of(job),
            attempt: number,
            gpus,
        });
    }

    /// The plan's next step is reached.
    pub(super) fn step(&mut self, job: usize, edition: u64) {
        let now = self.now;
        self.dirty = true;
        let Some(attempt) = self.attempt_mut(job) else {
            return;
        };
        if attempt.armed != Some(edition) {
            return;
        }
        let Some(&(at, step)) = attempt.plan.get(attempt.next) else {
            return;
        };
        // Rounding to milliseconds must not add up.
        attempt.settle(now);
        attempt.position = at;
        attempt.next += 1;
        attempt.armed = None;
        match step {
            Step::Attach => self.attach(job),
            Step::Allocate(target) => {
                attempt.target = target;
                self.allocate(job);
            }
            Step::Launch => {
                attempt.launched = true;
                let process = attempt.process(job);
                self.outbox.push_back(Event::FirstLaunch {
                    job: id_of(job),
                    process,
                });
                self.report_usage(job, None);
            }
            Step::Evaluate(evaluating) => {
                attempt.evaluating = evaluating;
                self.restart_reports(job);
            }
            Step::Done => self.leave(
                job,
                Leaving {
                    exit: Exit::Code(0),
                    end: AttemptEnd::Done,
                    hurt: Hurt::No,
                    saved_s: 0.0,
                },
                0,
            ),
        }
    }

    /// The attempt stops what it does and will be gone after so many milliseconds; at once
    /// with 0.
    pub(super) fn leave(&mut self, job: usize, leaving: Leaving, after_ms: u64) {
        let at = self.now + after_ms;
        let Some(attempt) = self.attempt_mut(job) else {
            return;
        };
        attempt.stage = Stage::Leaving;
        attempt.leaving = Some(leaving);
        attempt.armed = None;
        let number = attempt.number;
        self.dirty = true;
        if after_ms == 0 {
            self.exit(job, number);
        } else {
            self.clock.set(
                at,
                Timer::Exit {
                    job,
                    attempt: number,
                },
            );
        }
    }

    /// The attempt's processes are gone.
    pub(super) fn exit(&mut self, job: usize, number: u32) {
        let now = self.now;
        let Some(state) = self.jobs.get_mut(job) else {
            return;
        };
        let current = |attempt: &mut Attempt| attempt.number == number && attempt.leaving.is_some();
        let Some(attempt) = state.attempt.take_if(current) else {
            return;
        };
        let Some(leaving) = attempt.leaving.clone() else {
            return;
        };
        state.stage = JobStage::Undecided;
        let ran = now.saturating_sub(attempt.started);
        let kept = match leaving.end {
            AttemptEnd::Done => ran,
            _ => to_ms(leaving.saved_s - state.saved_s).min(ran),
        };
        state.saved_s = state.saved_s.max(leaving.saved_s);
        state.attempts.push(AttemptOutcome {
            number,
            gpus: attempt
                .gpus
                .iter()
                .map(|share| index_of(share.gpu))
                .collect(),
            started_ms: attempt.started,
            ended_ms: now,
            end: leaving.end,
            hurt: leaving.hurt,
            waited_ms: attempt.waited,
            lost_ms: ran - kept,
        });
        self.live.remove(&job);
        self.dirty = true;
        for share in &attempt.gpus {
            if let Some(gpu) = self.gpus.get_mut(share.gpu) {
                gpu.used = gpu.used.saturating_sub(share.held + share.context);
                gpu.residents.retain(|&resident| resident != job);
            }
            self.changed(share.gpu);
        }
        let id = id_of(job);
        if attempt.attached {
            let process = attempt.process(job);
            self.outbox
                .push_back(Event::ProcessGone { job: id, process });
        }
        self.outbox.push_back(Event::Ended {
            job: id,
            attempt: number,
            exit: leaving.exit,
        });
    }
}

/// NVML's index of a GPU.
pub(super) fn index_of(gpu: usize) -> GpuIndex {
    GpuIndex(u32::try_from(gpu).unwrap_or(u32::MAX))
}

/// Seconds as whole milliseconds; 0 for what is negative.
pub(super) fn to_ms(seconds: f64) -> u64 {
    whole(seconds * 1000.0)
}
