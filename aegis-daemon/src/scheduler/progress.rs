//! Progress and slowdown (contract C6): periods of the launch sequence per second, compared with
//! the same sequence alone. Anything else is unknown.

use aegis_common::id::{JobId, Moment, ProcessKey};
use aegis_common::job::{Phase, Slowdown, SlowdownUnknown};
use aegis_common::learned::SoloRate;
use serde::{Deserialize, Serialize};

use super::core::Core;
use super::job::{Job, Run};

/// Launch sequences whose rate alone is remembered per job.
const SOLO_RATES: usize = 8;
/// A measurement shown to users is of the last minute.
const SHOWN_FOR_MS: u64 = 60_000;

/// How fast a process went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pace {
    pub(super) fingerprint: u64,
    /// Periods per 1,000,000 seconds.
    pub(super) rate_uhz: u64,
    /// How long was measured.
    pub(super) window_ms: u32,
    /// The end of the measurement.
    pub(super) at: Moment,
}

/// How busy the host is, thousandths of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Host {
    /// Some task waited for a CPU.
    pub(super) cpu_waits: Option<u16>,
    /// Some task waited for I/O.
    pub(super) io_waits: Option<u16>,
}

/// What an attempt did while its slowdown was known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    /// Measured time, milliseconds.
    pub(super) measured_ms: u64,
    /// The time it would have taken alone.
    pub(super) alone_ms: u64,
}

impl Core {
    /// A process's progress was measured.
    pub(super) fn progressed(&mut self, id: JobId, key: ProcessKey, pace: Pace) {
        let alone = self.was_alone(id, pace);
        let host_bound = self.host_bound().is_some();
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        if alone && !host_bound && job.run.is_some() {
            note_solo_rate(&mut job.solo_rates, pace);
        }
        let solo = solo_rate(job, pace.fingerprint);
        let Some(run) = job.run.as_mut() else { return };
        let Some(process) = run.process_mut(key) else {
            return;
        };
        let since = process.pace.map_or(0, |last| pace.at.millis_since(last.at));
        process.pace = Some(pace);
        if let Some(permille) = solo.and_then(|solo| slowdown_permille(solo, pace)) {
            let measured_ms = since.max(u64::from(pace.window_ms));
            let alone_ms = measured_ms.saturating_mul(1000) / u64::from(permille.max(1));
            run.done.measured_ms = run.done.measured_ms.saturating_add(measured_ms);
            run.done.alone_ms = run.done.alone_ms.saturating_add(alone_ms);
        }
    }

    /// A job's slowdown as users see it.
    pub(super) fn slowdown(&self, job: &Job, at: Moment) -> Slowdown {
        let unknown = |why| Slowdown::Unknown { why };
        let Some(run) = job.run.as_ref() else {
            return unknown(SlowdownUnknown::NotLaunching);
        };
        match run.observation.phase_at(at, &self.policy) {
            Phase::WarmUp | Phase::Dormant => return unknown(SlowdownUnknown::NotLaunching),
            Phase::Observing | Phase::Steady => {}
        }
        if let Some(why) = self.host_bound() {
            return unknown(why);
        }
        let paces = run.processes.iter().filter_map(|process| process.pace);
        let mut recent = paces.filter(|pace| at.millis_since(pace.at) <= SHOWN_FOR_MS);
        let Some(first) = recent.next() else {
            return unknown(SlowdownUnknown::NoPeriod);
        };
        let slowest = std::iter::once(first)
            .chain(recent)
            .filter_map(|pace| self.permille(job, pace))
            .max();
        match slowest {
            Some(permille) => Slowdown::Measured { permille },
            None => unknown(SlowdownUnknown::NeverAlone),
        }
    }

    /// What a measurement says. A job that had its GPUs to itself is its own measure: that one
    /// window differs from the others is no neighbour's doing.
    fn permille(&self, job: &Job, pace: Pace) -> Option<u32> {
        let solo = solo_rate(job, pace.fingerprint)?;
        if self.was_alone(job.id, pace) {
            return Some(1000);
        }
        slowdown_permille(solo, pace)
    }

    /// A job's slowdown beside its present neighbours, thousandths: measured since they came, on a
    /// host that was no bottleneck.
    pub(super) fn present_slowdown(&self, job: &Job, run: &Run) -> Option<u32> {
        if self.host_bound().is_some() {
            return None;
        }
        let changed = self.neighbours_since(run);
        let paces = run.processes.iter().filter_map(|process| process.pace);
        let present = paces.filter(|pace| began(*pace) >= changed);
        present
            .filter_map(|pace| slowdown_permille(solo_rate(job, pace.fingerprint)?, pace))
            .max()
    }

    /// Whether the host rather than the GPU holds jobs up.
    pub(super) fn host_bound(&self) -> Option<SlowdownUnknown> {
        let high = |waits: Option<u16>| waits.is_some_and(|waits| waits >= self.policy.host_bound);
        if high(self.host.cpu_waits) {
            Some(SlowdownUnknown::CpuBound)
        } else if high(self.host.io_waits) {
            Some(SlowdownUnknown::IoBound)
        } else {
            None
        }
    }

    /// What of the host holds jobs up rather than the GPUs, in words.
    #[must_use]
    pub fn host_bottleneck(&self) -> Option<&'static str> {
        match self.host_bound()? {
            SlowdownUnknown::IoBound => Some("the host's disks"),
            _ => Some("the host's CPUs"),
        }
    }

    /// Nobody else was on its GPUs during the whole measurement.
    fn was_alone(&self, id: JobId, pace: Pace) -> bool {
        let Some((_, run)) = self.job_and_run(id) else {
            return false;
        };
        let alone = run.holds.iter().all(|hold| {
            let gpu = self.gpus.get(&hold.gpu);
            gpu.is_some_and(|gpu| gpu.residents == [id] && gpu.foreign.is_empty())
        });
        alone && began(pace) >= self.neighbours_since(run)
    }

    /// When somebody last came to or left one of its GPUs.
    fn neighbours_since(&self, run: &Run) -> Moment {
        let gpus = run.holds.iter().filter_map(|hold| self.gpus.get(&hold.gpu));
        gpus.map(|gpu| gpu.changed).max().unwrap_or(self.now)
    }
}

/// When the measurement began.
fn began(pace: Pace) -> Moment {
    Moment(pace.at.0.saturating_sub(u64::from(pace.window_ms)))
}

/// How fast a job's launch sequence goes alone.
fn solo_rate(job: &Job, fingerprint: u64) -> Option<u64> {
    let mut rates = job.solo_rates.iter();
    let found = rates.find(|rate| rate.fingerprint == fingerprint);
    found.map(|rate| rate.rate_uhz).filter(|&rate| rate > 0)
}

/// Thousandths; a job that goes faster than it did alone is as fast as alone.
fn slowdown_permille(solo_uhz: u64, pace: Pace) -> Option<u32> {
    let permille = solo_uhz.saturating_mul(1000).checked_div(pace.rate_uhz)?;
    Some(u32::try_from(permille).unwrap_or(u32::MAX).max(1000))
}

/// Takes a rate measured alone; a quarter of it counts where there was one before.
fn note_solo_rate(rates: &mut Vec<SoloRate>, pace: Pace) {
    let known = rates
        .iter()
        .position(|rate| rate.fingerprint == pace.fingerprint);
    let rate_uhz = match known.map(|position| rates.remove(position)) {
        Some(known) => (known.rate_uhz / 4)
            .saturating_mul(3)
            .saturating_add(pace.rate_uhz / 4),
        None => pace.rate_uhz,
    };
    if rates.len() >= SOLO_RATES {
        rates.remove(0);
    }
    rates.push(SoloRate {
        fingerprint: pace.fingerprint,
        rate_uhz,
    });
}
