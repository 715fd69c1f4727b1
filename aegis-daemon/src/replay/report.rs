//! Figures of an outcome. Ratios to exclusive use are formed from two reports.

use serde::Serialize;

use super::outcome::{AttemptEnd, AttemptOutcome, Hurt, JobOutcome, Outcome};

/// A replay in figures. Times in seconds; means and quantiles are over the jobs that completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Jobs of the trace.
    pub jobs: usize,
    /// Those that ended with exit code 0.
    pub completed: usize,
    /// Those that never ended: the policy left them waiting.
    pub unfinished: usize,
    /// From the first submission to the last end.
    pub makespan: f64,
    /// Mean time from submission to end.
    pub jct: f64,
    /// 95th percentile of it.
    pub p95_jct: f64,
    /// Mean running time of all attempts of a job.
    pub exec: f64,
    /// 95th percentile of it.
    pub p95_exec: f64,
    /// Mean of: running time of the last attempt by the time alone.
    pub slowdown: f64,
    /// 95th percentile of it.
    pub p95_slowdown: f64,
    /// The largest.
    pub max_slowdown: f64,
    /// Mean of: time from submission to end by the time alone.
    pub stretch: f64,
    /// 95th percentile of it.
    pub stretch_p95: f64,
    /// Attempts that ended because memory was refused.
    pub oom_kills: usize,
    /// Attempts after a job's first.
    pub requeues: usize,
    /// Attempts that saved their work and made room.
    pub suspends: usize,
    /// Attempts that were stopped, saving nothing.
    pub evictions: usize,
    /// GPU-seconds whose work was thrown away.
    pub gpu_s_lost: f64,
    /// The same as a share of all GPU-seconds used.
    pub lost_share: f64,
    /// Attempts that ended, were suspended or denied for good because of any other job.
    pub hurt: usize,
    /// Those because of a younger one: an incumbent paid for a newcomer.
    pub incumbents_hurt: usize,
    /// Mean wait of a further attempt, from the end of the one before it.
    pub relaunch_wait_s: f64,
    /// Sum of the time allocations waited for room.
    pub alloc_wait_s: f64,
}

impl Report {
    /// The figures of an outcome.
    #[must_use]
    pub fn new(outcome: &Outcome) -> Self {
        let completed = || outcome.jobs.iter().filter(|job| job.completed());
        let attempts = || outcome.jobs.iter().flat_map(|job| &job.attempts);
        let count = |wanted: &dyn Fn(&AttemptOutcome) -> bool| {
            attempts().filter(|attempt| wanted(attempt)).count()
        };
        let jct = Series::of(completed().map(JobOutcome::jct_s));
        let exec = Series::of(completed().map(JobOutcome::exec_s));
        let slowdown = Series::of(completed().map(JobOutcome::slowdown));
        let stretch = Series::of(completed().map(|job| job.jct_s() / job.solo_s.max(1e-3)));
        let gaps = outcome.jobs.iter().flat_map(|job| {
            let pairs = job.attempts.iter().zip(job.attempts.iter().skip(1));
            pairs.map(|(one, next)| seconds(next.started_ms.saturating_sub(one.ended_ms)))
        });
        let gaps = Series::of(gaps);
        let width = |attempt: &AttemptOutcome| attempt.gpus.len() as f64;
        let used: f64 = attempts()
            .map(|attempt| width(attempt) * seconds(attempt.ran_ms()))
            .sum();
        let gpu_s_lost: f64 = attempts()
            .map(|attempt| width(attempt) * seconds(attempt.lost_ms))
            .sum();
        let first = outcome.jobs.iter().map(|job| job.submitted_ms).min();
        let last = outcome.jobs.iter().filter_map(|job| job.ended_ms).max();
        let makespan = last.unwrap_or(0).saturating_sub(first.unwrap_or(0));
        let finished = outcome.jobs.iter().filter(|job| job.ended_ms.is_some());
        Self {
            jobs: outcome.jobs.len(),
            completed: completed().count(),
            unfinished: outcome.jobs.len() - finished.count(),
            makespan: seconds(makespan),
            jct: jct.mean(),
            p95_jct: jct.quantile(0.95),
            exec: exec.mean(),
            p95_exec: exec.quantile(0.95),
            slowdown: slowdown.mean(),
            p95_slowdown: slowdown.quantile(0.95),
            max_slowdown: slowdown.quantile(1.0),
            stretch: stretch.mean(),
            stretch_p95: stretch.quantile(0.95),
            oom_kills: count(&|one| matches!(one.end, AttemptEnd::OutOfMemory { .. })),
            requeues: gaps.values.len(),
            suspends: count(&|one| matches!(one.end, AttemptEnd::Suspended { .. })),
            evictions: count(&|one| matches!(one.end, AttemptEnd::Stopped { .. })),
            gpu_s_lost,
            lost_share: if used > 0.0 { gpu_s_lost / used } else { 0.0 },
            hurt: count(&|one| one.hurt != Hurt::No),
            incumbents_hurt: count(&|one| one.hurt == Hurt::ByYounger),
            relaunch_wait_s: gaps.mean(),
            alloc_wait_s: attempts().map(|one| seconds(one.waited_ms)).sum(),
        }
    }
}

impl JobOutcome {
    /// It ended with exit code 0.
    #[must_use]
    pub fn completed(&self) -> bool {
        self.outcome == Some(aegis_common::job::Outcome::Ok)
    }

    /// From submission to the end, seconds; 0 if it has none.
    #[must_use]
    pub fn jct_s(&self) -> f64 {
        let ended = self.ended_ms.unwrap_or(self.submitted_ms);
        seconds(ended.saturating_sub(self.submitted_ms))
    }

    /// Running time of all attempts, seconds.
    #[must_use]
    pub fn exec_s(&self) -> f64 {
        seconds(self.attempts.iter().map(AttemptOutcome::ran_ms).sum())
    }

    /// How much longer its work took than alone: running time of the last attempt, and what earlier
    /// ones saved, by the time alone.
    #[must_use]
    pub fn slowdown(&self) -> f64 {
        let kept: u64 = self
            .attempts
            .iter()
            .map(|attempt| match attempt.end {
                AttemptEnd::Done => attempt.ran_ms(),
                AttemptEnd::Suspended { .. } => attempt.ran_ms().saturating_sub(attempt.lost_ms),
                AttemptEnd::OutOfMemory { .. } | AttemptEnd::Stopped { .. } => 0,
            })
            .sum();
        seconds(kept) / self.solo_s.max(1e-3)
    }
}

/// Values in ascending order.
struct Series {
    values: Vec<f64>,
}

impl Series {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        Self { values }
    }

    /// 0 without values.
    fn mean(&self) -> f64 {
        if self.values.is_empty() {
            return 0.0;
        }
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// By linear interpolation between the nearest ranks; 0 without values.
    fn quantile(&self, share: f64) -> f64 {
        let Some(last) = self.values.len().checked_sub(1) else {
            return 0.0;
        };
        let place = share.clamp(0.0, 1.0) * last as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and the number of values"
        )]
        let below = place as usize;
        let at = |index: usize| self.values.get(index.min(last)).copied().unwrap_or(0.0);
        at(below) + (at(below + 1) - at(below)) * (place - below as f64)
    }
}

fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}
