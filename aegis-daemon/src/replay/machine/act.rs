//! Carrying out what the scheduler decided.

use aegis_common::action::{Action, StopHow};
use aegis_common::event::Event;
use aegis_common::id::{GpuIndex, JobId};
use aegis_common::job::{Exit, Outcome};
use aegis_common::reason::StopReason;

use super::attempt::index_of;
use super::clock::Timer;
use super::job::{Attempt, JobStage, Leaving, Share, Stage};
use super::{Machine, place_of};
use crate::replay::outcome::AttemptEnd;

/// The signal that ends an attempt.
const SIGTERM: i32 = 15;

impl Machine<'_> {
    /// Does what the scheduler says.
    pub(in crate::replay) fn act(&mut self, action: &Action) {
        match action {
            Action::Start {
                job, attempt, gpus, ..
            } => self.start(*job, *attempt, gpus),
            Action::Stop {
                job,
                attempt,
                why,
                how,
            } => self.stop(*job, *attempt, why, how),
            Action::SetLease {
                process,
                gpu,
                limit,
                ..
            } => {
                let job = self.live.iter().copied().find(|&job| {
                    self.attempt(job)
                        .is_some_and(|attempt| attempt.process(job) == *process)
                });
                let attempt = job.and_then(|job| self.attempt_mut(job));
                let share = attempt.and_then(|attempt| {
                    let mut shares = attempt.gpus.iter_mut();
                    shares.find(|share| index_of(share.gpu) == *gpu)
                });
                if let Some(share) = share {
                    share.limit = *limit;
                }
            }
            Action::Answer { request, answer } => self.answered(*request, answer),
            Action::Finish { job, outcome } => self.finish(*job, outcome),
            Action::Retry { job, .. } => {
                let state = self.jobs.get_mut(place_of(*job));
                if let Some(state) = state.filter(|job| job.stage == JobStage::Undecided) {
                    state.stage = JobStage::Pending;
                    self.now_pending();
                }
            }
            Action::Learn { job, observed } => {
                self.taught.push((place_of(*job), observed.clone()));
            }
            Action::WakeAt { at } => {
                self.wake = self.edition();
                let edition = self.wake;
                self.clock.set(at.0.max(self.now), Timer::Wake { edition });
            }
        }
    }

    /// A job is over.
    fn finish(&mut self, id: JobId, outcome: &Outcome) {
        let now = self.now;
        let Some(state) = self.jobs.get_mut(place_of(id)) else {
            return;
        };
        match state.stage {
            JobStage::Pending => self.pending = self.pending.saturating_sub(1),
            JobStage::Undecided => {}
            JobStage::Unborn | JobStage::Live | JobStage::Over => return,
        }
        state.stage = JobStage::Over;
        state.ended = Some((now, outcome.clone()));
        self.over += 1;
    }

    /// Starts an attempt; says so if it cannot be.
    fn start(&mut self, id: JobId, number: u32, gpus: &[GpuIndex]) {
        let job = place_of(id);
        let places: Vec<usize> = gpus.iter().map(|gpu| gpu.0 as usize).collect();
        let Some(workload) = self.workload(job) else {
            return;
        };
        let Some(state) = self.jobs.get_mut(job) else {
            return;
        };
        if state.stage != JobStage::Pending {
            return;
        }
        let mut distinct = places.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let known = places.iter().all(|&place| place < self.gpus.len());
        self.pending = self.pending.saturating_sub(1);
        if places.is_empty() || distinct.len() < places.len() || !known {
            self.pending += 1;
            let error = format!("no such set of GPUs: {gpus:?}");
            self.outbox.push_back(Event::StartFailed {
                job: id,
                attempt: number,
                error,
            });
            return;
        }
        let shares = places.iter().enumerate().map(|(rank, &gpu)| Share {
            gpu,
            peak: workload.peak_of(rank),
            held: 0,
            context: 0,
            limit: 0,
        });
        state.stage = JobStage::Live;
        state.attempt = Some(Attempt::new(number, shares.collect(), self.now));
        self.live.insert(job);
        for place in places {
            if let Some(gpu) = self.gpus.get_mut(place) {
                gpu.residents.push(job);
            }
        }
        let at = self.now + self.config.launch_ms;
        let attempt = number;
        self.clock.set(at, Timer::Launched { job, attempt });
    }

    /// Ends an attempt. One that is leaving already goes on leaving.
    fn stop(&mut self, id: JobId, number: u32, why: &StopReason, how: &StopHow) {
        let job = place_of(id);
        let (now, config) = (self.now, self.config);
        let hurt = self.stopped_for(job, why);
        let Some(state) = self.jobs.get_mut(job) else {
            return;
        };
        let saved_s = state.saved_s;
        let Some(attempt) = state.attempt.as_mut() else {
            return;
        };
        if attempt.number != number || attempt.stage == Stage::Leaving {
            return;
        }
        if attempt.stage == Stage::Launching {
            attempt.started = now;
        }
        attempt.settle(now);
        if let Some(ask) = attempt.ask.take() {
            attempt.waited += now - ask.since;
        }
        let saves = match how {
            StopHow::Suspend { on_suspend } => {
                let grace_ms = u64::from(on_suspend.grace_s) * 1000;
                attempt.launched && config.save_ms <= grace_ms
            }
            _ => false,
        };
        let why = why.clone();
        let (exit, end, saved_s, after_ms) = if saves {
            let end = AttemptEnd::Suspended { why };
            (Exit::Code(0), end, attempt.work_s(), config.save_ms)
        } else {
            let end = AttemptEnd::Stopped { why };
            (Exit::Signal(SIGTERM), end, saved_s, config.stop_ms)
        };
        let leaving = Leaving {
            exit,
            end,
            hurt,
            saved_s,
        };
        self.leave(job, leaving, after_ms.max(1));
    }
}
