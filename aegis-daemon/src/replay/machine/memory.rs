//! Allocations: the shim asks for what its lease does not cover; the GPU itself is a hard wall.

use aegis_common::action::GrowAnswer;
use aegis_common::event::Event;
use aegis_common::job::Exit;
use aegis_common::reason::Denial;

use super::attempt::index_of;
use super::job::{Ask, Leaving, Stage};
use super::{Machine, id_of};
use crate::replay::outcome::{AttemptEnd, Hurt};

/// A refused request is repeated once, as PyTorch's allocator does after freeing its cache.
const TRIES: u32 = 2;

impl Machine<'_> {
    /// The first CUDA call: the process is known and has a context on each of its GPUs.
    pub(super) fn attach(&mut self, job: usize) {
        let instrumented = self.instrumented;
        let Some(attempt) = self.attempt_mut(job) else {
            return;
        };
        attempt.attached = true;
        let process = attempt.process(job);
        let count = attempt.gpus.len();
        let id = id_of(job);
        self.outbox.push_back(if instrumented {
            Event::ProcessAttached { job: id, process }
        } else {
            Event::ProcessUninstrumented { job: id, process }
        });
        let context = self.config.context;
        for index in 0..count {
            if !self.take(job, index, context, true) {
                return self.run_out(job, index, context, None);
            }
        }
    }

    /// Allocates until the attempt holds its target on each GPU, or has to ask.
    pub(super) fn allocate(&mut self, job: usize) {
        let instrumented = self.instrumented;
        loop {
            let Some(attempt) = self.attempt_mut(job) else {
                return;
            };
            let target = attempt.target;
            let missing = attempt.gpus.iter().enumerate().find_map(|(index, share)| {
                let missing = part(share.peak, target).saturating_sub(share.held);
                (missing > 0).then_some((index, missing, share.held, share.limit))
            });
            let Some((index, bytes, held, limit)) = missing else {
                attempt.stage = Stage::Running;
                self.dirty = true;
                return self.report_usage(job, None);
            };
            if instrumented && held.saturating_add(bytes) > limit {
                return self.ask(job, index, bytes, 1);
            }
            if !self.take(job, index, bytes, false) {
                return self.run_out(job, index, bytes, None);
            }
        }
    }

    /// Takes memory of a GPU, for the context or for an allocation; false if it is full.
    fn take(&mut self, job: usize, index: usize, bytes: u64, for_context: bool) -> bool {
        let most = self.usable();
        let Some(share) = self
            .jobs
            .get_mut(job)
            .and_then(|job| job.attempt.as_mut())
            .and_then(|attempt| attempt.gpus.get_mut(index))
        else {
            return false;
        };
        let Some(gpu) = self.gpus.get_mut(share.gpu) else {
            return false;
        };
        if gpu.used.saturating_add(bytes) > most {
            return false;
        }
        gpu.used += bytes;
        if for_context {
            share.context += bytes;
        } else {
            share.held += bytes;
        }
        let place = share.gpu;
        self.changed(place);
        true
    }

    /// Bytes of a GPU that programs can use.
    pub(super) const fn usable(&self) -> u64 {
        self.config
            .gpu_memory
            .saturating_sub(self.config.driver_reserve)
    }

    /// The shim asks for a larger lease.
    fn ask(&mut self, job: usize, index: usize, bytes: u64, try_number: u32) {
        self.requests += 1;
        let (request, now) = (self.requests, self.now);
        let Some(attempt) = self.attempt_mut(job) else {
            return;
        };
        let Some(share) = attempt.gpus.get(index) else {
            return;
        };
        let event = Event::Grow {
            request,
            job: id_of(job),
            process: attempt.process(job),
            gpu: index_of(share.gpu),
            bytes,
            held: share.held.saturating_add(bytes),
            try_number,
        };
        attempt.settle(now);
        attempt.stage = Stage::Waiting;
        attempt.rate = 0.0;
        let since = attempt.ask.map_or(now, |ask| ask.since);
        attempt.ask = Some(Ask {
            request,
            share: index,
            bytes,
            try_number,
            since,
        });
        self.outbox.push_back(event);
    }

    /// The answer to a request.
    pub(super) fn answered(&mut self, request: u64, answer: &GrowAnswer) {
        let now = self.now;
        let asks = |job: &usize| {
            let ask = self.attempt(*job).and_then(|attempt| attempt.ask);
            ask.filter(|ask| ask.request == request)
                .map(|ask| (*job, ask))
        };
        let Some((job, ask)) = self.live.iter().find_map(asks) else {
            return;
        };
        self.dirty = true;
        let Some(attempt) = self.attempt_mut(job) else {
            return;
        };
        if attempt.stage != Stage::Waiting {
            return;
        }
        match answer {
            GrowAnswer::Wait { .. } => {}
            GrowAnswer::Granted { .. } => {
                attempt.waited += now - ask.since;
                attempt.ask = None;
                if self.take(job, ask.share, ask.bytes, false) {
                    self.allocate(job);
                } else {
                    self.run_out(job, ask.share, ask.bytes, None);
                }
            }
            GrowAnswer::Denied { .. } if ask.try_number < TRIES => {
                self.ask(job, ask.share, ask.bytes, ask.try_number + 1);
            }
            GrowAnswer::Denied { why } => {
                attempt.waited += now - ask.since;
                attempt.ask = None;
                self.run_out(job, ask.share, ask.bytes, Some(why));
            }
        }
    }

    /// The program dies of the refusal: by the scheduler, or by the GPU being full.
    fn run_out(&mut self, job: usize, index: usize, bytes: u64, denial: Option<&Denial>) {
        let Some(place) = self
            .attempt(job)
            .and_then(|attempt| Some(attempt.gpus.get(index)?.gpu))
        else {
            return;
        };
        let hurt = match denial {
            Some(
                Denial::BeyondDeclared { .. } | Denial::ExceedsCapacity { .. } | Denial::NotHeld,
            ) => Hurt::No,
            Some(Denial::BeingEvicted { job: older }) => self.because_of(job, *older),
            _ => self.crowded_out(job, index, bytes),
        };
        self.report_usage(job, Some((place, bytes)));
        let leaving = Leaving {
            exit: Exit::Code(1),
            end: AttemptEnd::OutOfMemory {
                gpu: index_of(place),
                bytes,
                physical: denial.is_none(),
            },
            hurt,
            saved_s: 0.0,
        };
        self.leave(job, leaving, self.config.exit_ms.max(1));
    }
}

/// A share of some bytes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of at most 1 of a number of bytes"
)]
fn part(bytes: u64, share: f64) -> u64 {
    if share >= 1.0 {
        bytes
    } else {
        (bytes as f64 * share) as u64
    }
}
