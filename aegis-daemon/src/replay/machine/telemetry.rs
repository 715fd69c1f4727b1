//! What the daemon would see: samples, ledgers, progress.
//!
//! Samples are adaptive. After each change on a GPU a burst of quick ones, so that the gate's
//! window shows the new state; then, while jobs wait for a decision, a slow beat; else none.

use aegis_common::event::{Event, GpuSample, ProcessGpu};

use super::attempt::index_of;
use super::clock::Timer;
use super::{Machine, SLOW_SAMPLE_MS, id_of};
use crate::replay::number::whole;
use crate::replay::outcome::Point;
use crate::replay::truth::mix;
use crate::replay::workload::Workload;

/// From a change to the first sample that shows it, milliseconds.
const FIRST_SAMPLE_MS: u64 = 200;
/// Between quick samples, milliseconds.
const QUICK_SAMPLE_MS: u64 = 1_000;
/// From a change of speed to the first progress report, milliseconds.
const FIRST_REPORT_MS: u64 = 5_000;
/// Progress reports become rarer by this factor.
const REPORT_FACTOR: u64 = 4;
/// At least this often a ledger is read, milliseconds: a job that launches must not seem dormant.
const LONGEST_REPORT_MS: u64 = 240_000;

impl Machine<'_> {
    /// Something changed on a GPU: samples come quickly for a while.
    pub(super) fn changed(&mut self, gpu: usize) {
        let (now, burst, edition) = (self.now, self.burst, self.editions + 1);
        let Some(state) = self.gpus.get_mut(gpu) else {
            return;
        };
        state.burst = burst;
        let soon = (now + FIRST_SAMPLE_MS).max(state.last_sample + FIRST_SAMPLE_MS);
        if state.next_sample.is_none_or(|next| next > soon) {
            state.next_sample = Some(soon);
            state.edition = edition;
            self.editions = edition;
            self.clock.set(soon, Timer::Sample { gpu, edition });
        }
    }

    /// Something changed on all GPUs of an attempt.
    pub(super) fn all_changed(&mut self, job: usize) {
        let attempt = self.attempt(job);
        let gpus: Vec<usize> = attempt
            .into_iter()
            .flat_map(|attempt| attempt.gpus.iter().map(|share| share.gpu))
            .collect();
        for gpu in gpus {
            self.changed(gpu);
        }
    }

    /// One more job waits for a decision. If none did, samples may be old: the daemon would have
    /// fresh ones.
    pub(super) fn now_pending(&mut self) {
        self.pending += 1;
        if self.pending > 1 {
            return;
        }
        for gpu in 0..self.gpus.len() {
            let old = self.gpus.get(gpu).is_some_and(|state| {
                state.next_sample.is_none() && self.now - state.last_sample >= QUICK_SAMPLE_MS
            });
            if old {
                self.sample(gpu);
            }
        }
    }

    /// A sample is due.
    pub(super) fn sample_due(&mut self, gpu: usize, edition: u64) {
        if self
            .gpus
            .get(gpu)
            .is_some_and(|state| state.edition == edition)
        {
            self.sample(gpu);
        }
    }

    /// Samples a GPU and sets the timer for the next one.
    pub(super) fn sample(&mut self, gpu: usize) {
        let reading = self.reading(gpu);
        let (now, pending, edition) = (self.now, self.pending > 0, self.editions + 1);
        let Some(state) = self.gpus.get_mut(gpu) else {
            return;
        };
        state.last_sample = now;
        let next = if state.burst > 0 {
            state.burst -= 1;
            Some(now + QUICK_SAMPLE_MS)
        } else {
            pending.then_some(now + SLOW_SAMPLE_MS)
        };
        state.next_sample = next;
        state.edition = edition;
        self.editions = edition;
        if self.config.keep_series {
            self.series.push(Point {
                at_ms: now,
                gpu: index_of(gpu),
                used: state.used.saturating_add(self.config.driver_reserve),
                sm_active: state.activity.sm_active,
                residents: state.residents.len(),
            });
        }
        if let Some(next) = next {
            self.clock.set(next, Timer::Sample { gpu, edition });
        }
        self.outbox.push_back(Event::Sampled { sample: reading });
    }

    /// What NVML says of a GPU now.
    fn reading(&mut self, gpu: usize) -> GpuSample {
        use aegis_common::policy::Tier;
        let (activity, used, residents) = match self.gpus.get(gpu) {
            Some(state) => (state.activity, state.used, state.residents.as_slice()),
            None => Default::default(),
        };
        let mut jobs: Vec<_> = residents
            .iter()
            .filter_map(|&job| {
                let attempt = self.attempt(job).filter(|attempt| attempt.attached)?;
                let share = attempt.gpus.iter().find(|share| share.gpu == gpu)?;
                Some((id_of(job), share.held + share.context))
            })
            .collect();
        jobs.sort_unstable_by_key(|&(job, _)| job);
        let used = used.saturating_add(self.config.driver_reserve);
        let mut shown = |share: f64| {
            let noise = self
                .sample_noise
                .roughly_normal(self.config.telemetry_noise);
            thousandths(share * self.config.telemetry_factor * (1.0 + noise))
        };
        let (sm_active, sm_occupancy, dram_active) = match self.config.tier {
            Tier::Gpm | Tier::Dcgm => (
                Some(shown(activity.sm_active)),
                Some(shown(activity.sm_occupancy)),
                Some(shown(activity.dram_active)),
            ),
            Tier::Utilisation => (Some(shown(activity.utilisation)), None, None),
            Tier::None => (None, None, None),
        };
        GpuSample {
            gpu: index_of(gpu),
            sm_active,
            sm_occupancy,
            dram_active,
            used: Some(used),
            foreign: Vec::new(),
            jobs,
        }
    }

    /// The daemon reads the ledger of an attempt's process. `refusal`: a GPU and a request that
    /// was refused there. Nothing shows how much a process without the shim holds, but its log
    /// tells of the refusal.
    pub(super) fn report_usage(&mut self, job: usize, refusal: Option<(usize, u64)>) {
        if !self.instrumented && refusal.is_none() {
            return;
        }
        let now = self.now;
        let workload = self.workload(job);
        let Some(attempt) = self.attempt_mut(job) else {
            return;
        };
        attempt.settle(now);
        let launches = if attempt.launched {
            1 + workload.map_or(0, |workload| launches(workload, attempt.work_s()))
        } else {
            0
        };
        let lines = attempt.gpus.iter().map(|share| ProcessGpu {
            gpu: index_of(share.gpu),
            used: share.held,
            inflight: 0,
            nvml: Some(share.held + share.context),
            refusal: refusal
                .filter(|&(gpu, _)| gpu == share.gpu)
                .map(|(_, bytes)| bytes),
        });
        let event = Event::Usage {
            job: id_of(job),
            process: attempt.process(job),
            launches,
            gpus: lines.collect(),
        };
        self.outbox.push_back(event);
    }

    /// An attempt's speed or launch sequence changed: it is measured anew.
    pub(super) fn restart_reports(&mut self, job: usize) {
        if !self.instrumented {
            return;
        }
        let now = self.now;
        let edition = self.edition();
        let Some(attempt) = self.attempt_mut(job) else {
            return;
        };
        attempt.report = edition;
        attempt.measured = now;
        attempt.pause = FIRST_REPORT_MS;
        if attempt.active() {
            let timer = Timer::Report { job, edition };
            self.clock.set(now + FIRST_REPORT_MS, timer);
        }
    }

    /// Ledger and progress are read again.
    pub(super) fn report_due(&mut self, job: usize, edition: u64) {
        let now = self.now;
        let noise = 1.0
            + self
                .progress_noise
                .roughly_normal(self.config.progress_noise);
        let Some(workload) = self.workload(job) else {
            return;
        };
        let Some(attempt) = self.attempt_mut(job) else {
            return;
        };
        if attempt.report != edition || !attempt.active() {
            return;
        }
        let (fingerprint, period_s) = sequence(workload, attempt.evaluating);
        let event = Event::Progress {
            job: id_of(job),
            process: attempt.process(job),
            fingerprint,
            rate_uhz: whole(attempt.rate / period_s * 1e6 * noise),
            window_ms: u32::try_from(now - attempt.measured).unwrap_or(u32::MAX),
        };
        attempt.measured = now;
        attempt.pause = (attempt.pause * REPORT_FACTOR).min(LONGEST_REPORT_MS);
        let next = now + attempt.pause;
        self.clock.set(next, Timer::Report { job, edition });
        self.report_usage(job, None);
        self.outbox.push_back(event);
    }
}

/// A launch sequence's fingerprint and its period alone, seconds. The fingerprint depends on what
/// the program does, never on its name; the same program has the same in every trace. An
/// evaluation runs forward only: about a third of a step.
fn sequence(workload: &Workload, evaluating: bool) -> (u64, f64) {
    let parts = [
        workload.period_s.to_bits(),
        u64::from(workload.launches),
        workload.solo_s.to_bits(),
        workload.peak(),
        workload.sm_active.to_bits(),
        u64::from(evaluating),
    ];
    let fingerprint = parts
        .into_iter()
        .fold(0, |hash, part| mix(hash ^ mix(part)));
    let period_s = workload.period_s.max(1e-6);
    (
        fingerprint,
        if evaluating { period_s / 3.0 } else { period_s },
    )
}

/// Launches within so much work.
fn launches(workload: &Workload, work_s: f64) -> u64 {
    whole(work_s / workload.period_s.max(1e-6) * f64::from(workload.launches))
}

/// A share as NVML tells it.
fn thousandths(share: f64) -> u16 {
    u16::try_from(whole(share.clamp(0.0, 1.0) * 1000.0)).unwrap_or(1000)
}
