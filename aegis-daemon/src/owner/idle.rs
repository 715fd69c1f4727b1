//! GPUs that a running job keeps from others without using them.
//!
//! A GPU counts as unused while no process of the job holds memory there (nothing can be launched
//! without), or while the job launches nothing anywhere. A job with a process whose doings nobody
//! sees is never accused.

use std::collections::{BTreeMap, BTreeSet};

use aegis_common::id::{GpuIndex, JobId, Moment};
use aegis_common::job::{JobState, Phase};
use aegis_common::wire::IdleGpu;
use tracing::warn;

use super::Owner;
use crate::scheduler::JobSummary;

/// How often jobs are looked through, milliseconds.
const LOOK_EVERY_MS: u64 = 10_000;

/// When jobs were last seen to use their GPUs.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// By job and GPU: when it last held memory there.
    held: BTreeMap<(JobId, GpuIndex), Moment>,
    /// By job: when it last launched anything.
    launched: BTreeMap<JobId, Moment>,
    /// What was reported.
    reported: BTreeSet<(JobId, GpuIndex)>,
    looked: Moment,
}

impl Uses {
    /// A process's ledger was read: what it holds now, and whether it launched since.
    pub(super) fn seen(
        &mut self,
        now: Moment,
        job: JobId,
        held: impl Iterator<Item = GpuIndex>,
        launched: bool,
    ) {
        for gpu in held {
            self.held.insert((job, gpu), now);
        }
        if launched {
            self.launched.insert(job, now);
        }
    }

    /// The job is over, or begins anew.
    pub(super) fn forget(&mut self, job: JobId) {
        self.held.retain(|(of, _), _| *of != job);
        self.launched.remove(&job);
        self.reported.retain(|(of, _)| *of != job);
    }

    /// The GPUs of a running job that it has not used for so long.
    fn idle(&self, summary: &JobSummary, now: Moment, after_ms: u64) -> Vec<IdleGpu> {
        let JobState::Running { phase } = summary.state else {
            return Vec::new();
        };
        let started = summary.attempts.last().and_then(|attempt| attempt.started);
        let Some(started) = started else {
            return Vec::new();
        };
        let idle = |holding: &aegis_common::job::Holding| {
            if phase == Phase::Dormant {
                let launched = self.launched.get(&summary.id).copied();
                return Some(IdleGpu {
                    gpu: holding.gpu,
                    since: launched.unwrap_or(started).max(started),
                    dormant: true,
                });
            }
            let held = self.held.get(&(summary.id, holding.gpu)).copied();
            let since = held.unwrap_or(started).max(started);
            let unused = holding.used == 0 && now.millis_since(since) >= after_ms;
            unused.then_some(IdleGpu {
                gpu: holding.gpu,
                since,
                dormant: false,
            })
        };
        summary.holdings.iter().filter_map(idle).collect()
    }
}

impl Owner {
    /// The GPUs of a running job on which nothing happens.
    pub(super) fn idle_gpus(&self, summary: &JobSummary) -> Vec<IdleGpu> {
        if self.uninstrumented.values().any(|job| *job == summary.id) {
            return Vec::new();
        }
        let after_ms = self.settings.idle_after_ms;
        self.uses.idle(summary, self.clock.now(), after_ms)
    }

    /// Tells the log of each GPU that has become idle, once.
    pub(super) fn report_idle(&mut self) {
        let now = self.clock.now();
        let every = LOOK_EVERY_MS.min(self.settings.idle_after_ms);
        if now.millis_since(self.uses.looked) < every {
            return;
        }
        self.uses.looked = now;
        let jobs = self.core.live().filter_map(|job| self.core.job(job));
        let running = jobs.filter(|job| matches!(job.state, JobState::Running { .. }));
        let mut idle = BTreeMap::new();
        for summary in running.collect::<Vec<_>>() {
            for found in self.idle_gpus(&summary) {
                idle.insert((summary.id, found.gpu), found);
            }
        }
        for ((job, gpu), found) in &idle {
            if self.uses.reported.contains(&(*job, *gpu)) {
                continue;
            }
            let minutes = now.millis_since(found.since) / 60_000;
            if found.dormant {
                warn!(%job, %gpu, minutes, "keeps a GPU and launches nothing");
            } else {
                warn!(%job, %gpu, minutes, "keeps a GPU on which it holds no memory");
            }
        }
        // One that was used meanwhile may be reported again.
        self.uses.reported = idle.into_keys().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::AttemptSummary;
    use aegis_common::job::{Holding, Resources, Slowdown, SlowdownUnknown};

    const JOB: JobId = JobId(7);
    const AFTER: u64 = 600_000;

    fn summary(phase: Phase, used: [u64; 2]) -> JobSummary {
        let holding = |gpu, used| Holding {
            gpu: GpuIndex(gpu),
            lease: 1,
            overhead: 0,
            used,
            peak: used,
        };
        JobSummary {
            id: JOB,
            uid: 1000,
            resources: Resources {
                gpus: 2,
                gpu_mem: None,
                priority: 0,
                exclusive: false,
                requeue: true,
                retries: 0,
                time_limit_s: None,
                on_suspend: None,
            },
            state: JobState::Running { phase },
            submitted: Moment(0),
            first_started: Some(Moment(1_000)),
            ended: None,
            attempts: vec![AttemptSummary {
                number: 1,
                gpus: vec![GpuIndex(0), GpuIndex(1)],
                started: Some(Moment(1_000)),
                ended: None,
                exit: None,
                stopped: None,
                retried: None,
                peak: 0,
            }],
            holdings: vec![holding(0, used[0]), holding(1, used[1])],
            floor: None,
            next_exclusive: false,
            evictions: 0,
            position: None,
            slowdown: Slowdown::Unknown {
                why: SlowdownUnknown::NoPeriod,
            },
        }
    }

    fn idle(uses: &Uses, summary: &JobSummary, now: u64) -> Vec<(u32, u64, bool)> {
        let found = uses.idle(summary, Moment(now), AFTER).into_iter();
        found
            .map(|one| (one.gpu.0, one.since.0, one.dormant))
            .collect()
    }

    #[test]
    fn the_gpu_that_was_asked_for_and_not_taken_is_idle_after_a_while() {
        let mut uses = Uses::default();
        let one_used = summary(Phase::Steady, [5, 0]);
        uses.seen(Moment(2_000), JOB, [GpuIndex(0)].into_iter(), true);
        assert_eq!(idle(&uses, &one_used, 600_999), []);
        assert_eq!(idle(&uses, &one_used, 601_000), [(1, 1_000, false)]);
        // Memory it held for a time counts, too.
        uses.seen(Moment(500_000), JOB, [GpuIndex(1)].into_iter(), false);
        assert_eq!(idle(&uses, &one_used, 1_099_999), []);
        assert_eq!(idle(&uses, &one_used, 1_100_000), [(1, 500_000, false)]);
        // A job that never called CUDA has both.
        uses.forget(JOB);
        let unused = summary(Phase::WarmUp, [0, 0]);
        let both = [(0, 1_000, false), (1, 1_000, false)];
        assert_eq!(idle(&uses, &unused, 700_000), both);
    }

    #[test]
    fn a_dormant_job_has_all_of_them_since_its_last_launch() {
        let mut uses = Uses::default();
        let dormant = summary(Phase::Dormant, [5, 5]);
        assert_eq!(idle(&uses, &dormant, 5_000)[0], (0, 1_000, true));
        uses.seen(Moment(4_000), JOB, std::iter::empty(), true);
        let both = [(0, 4_000, true), (1, 4_000, true)];
        assert_eq!(idle(&uses, &dormant, 5_000), both);
        let over = JobSummary {
            state: JobState::Pending,
            ..dormant
        };
        assert_eq!(idle(&uses, &over, 5_000), []);
    }
}
