//! What others may know of the core's state.

use aegis_common::id::{GpuIndex, JobId, Moment};
use aegis_common::job::{Exit, Holding, JobState, Resources, Slowdown};
use aegis_common::reason::{RetryReason, StopReason};
use aegis_common::wire::GpuView;
use serde::{Deserialize, Serialize};

use super::core::Core;
use super::gate::figures;
use super::job::{Job, Run, Stage};

/// A job as the scheduler sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSummary {
    /// Its number.
    pub id: JobId,
    /// The owner.
    pub uid: u32,
    /// What it asked for.
    pub resources: Resources,
    /// Where it is in its life.
    pub state: JobState,
    /// When it was accepted.
    pub submitted: Moment,
    /// When its first attempt started: its seniority.
    pub first_started: Option<Moment>,
    /// When it was over.
    pub ended: Option<Moment>,
    /// Attempts so far, oldest first.
    pub attempts: Vec<AttemptSummary>,
    /// What the attempt in progress holds, per GPU.
    pub holdings: Vec<Holding>,
    /// Bytes the next attempt will be promised on each GPU, once an attempt told.
    pub floor: Option<u64>,
    /// The next attempt has its GPUs to itself.
    pub next_exclusive: bool,
    /// Times it was stopped for others.
    pub evictions: u32,
    /// How much slower it runs than alone.
    pub slowdown: Slowdown,
    /// Place in the queue from 1 while pending.
    pub position: Option<u32>,
}

/// An attempt as the scheduler sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptSummary {
    /// From 1.
    pub number: u32,
    /// Where, in rank order.
    pub gpus: Vec<GpuIndex>,
    /// When its command was started.
    pub started: Option<Moment>,
    /// When its process tree was gone.
    pub ended: Option<Moment>,
    /// How its main process ended.
    pub exit: Option<Exit>,
    /// Why it was stopped.
    pub stopped: Option<StopReason>,
    /// Why another attempt followed.
    pub retried: Option<RetryReason>,
    /// Highest bytes held on any one of its GPUs.
    pub peak: u64,
}

impl AttemptSummary {
    /// An attempt just placed.
    pub(super) const fn new(number: u32, gpus: Vec<GpuIndex>) -> Self {
        Self {
            number,
            gpus,
            started: None,
            ended: None,
            exit: None,
            stopped: None,
            retried: None,
            peak: 0,
        }
    }
}

impl Core {
    /// A job that is live, or over and not yet forgotten.
    #[must_use]
    pub fn job(&self, job: JobId) -> Option<JobSummary> {
        let job = self.jobs.get(&job)?;
        let holdings = job.run.as_ref().map(|run| self.holdings(run));
        let ahead = self.queue.ahead(job.ticket());
        Some(JobSummary {
            id: job.id,
            uid: job.uid,
            resources: job.resources.clone(),
            state: self.state(job),
            submitted: job.submitted,
            first_started: job.first_started,
            ended: job.ended,
            attempts: job.attempts.clone(),
            holdings: holdings.unwrap_or_default(),
            floor: job.floor,
            next_exclusive: job.next_exclusive,
            evictions: job.evictions,
            slowdown: self.slowdown(job, self.now),
            position: ahead.map(|ahead| u32::try_from(ahead + 1).unwrap_or(u32::MAX)),
        })
    }

    /// The moment of the last step.
    #[must_use]
    pub const fn now(&self) -> Moment {
        self.now
    }

    /// What the processes of a job's attempt in progress see as a GPU's total, if anything else
    /// than its memory.
    #[must_use]
    pub fn virtual_total(&self, job: JobId) -> Option<u64> {
        self.jobs.get(&job)?.run.as_ref()?.virtual_total()
    }

    /// Live jobs: those with an attempt in progress by number, then the pending ones in queue
    /// order.
    pub fn live(&self) -> impl Iterator<Item = JobId> {
        self.running.iter().copied().chain(self.queue.order())
    }

    /// Whether any job is live.
    #[must_use]
    pub fn has_live(&self) -> bool {
        !self.running.is_empty() || !self.queue.is_empty()
    }

    /// The machine's GPUs, lost ones included, by index.
    #[must_use]
    pub fn gpus(&self, at: Moment) -> Vec<GpuView> {
        let at = at.max(self.now);
        let view = |gpu: &super::gpu::GpuState| {
            let facts = self.facts(gpu, at);
            let figures = figures(&gpu.samples, self.gate_since(gpu), &self.policy);
            GpuView {
                index: gpu.info.index,
                uuid: gpu.info.uuid.clone(),
                name: gpu.info.name.clone(),
                memory: gpu.info.memory,
                used: gpu.used,
                promised: facts.promised,
                unmanaged: facts.unmanaged,
                guard: facts.guard,
                available: u64::try_from(facts.room).unwrap_or(0),
                tier: gpu.info.tier,
                sm_active: figures.map(|figures| figures.sm_active),
                sm_occupancy: figures.and_then(|figures| figures.sm_occupancy),
                dram_active: figures.and_then(|figures| figures.dram_active),
                sample_age_ms: gpu.last_valid.map(|valid| at.millis_since(valid)),
                residents: facts.residents,
                foreign: gpu.foreign.clone(),
                lost: gpu.lost,
                peers: gpu.info.peers.clone(),
            }
        };
        self.gpus.values().map(view).collect()
    }

    /// Drops the record of a job that is over.
    pub fn forget(&mut self, job: JobId) {
        let over = |job: &Job| matches!(job.stage, Stage::Done { .. });
        if self.jobs.get(&job).is_some_and(over) {
            self.jobs.remove(&job);
        }
    }

    fn state(&self, job: &Job) -> JobState {
        match &job.stage {
            Stage::Pending => JobState::Pending,
            Stage::Starting => JobState::Starting,
            Stage::Running => JobState::Running {
                phase: job
                    .run
                    .as_ref()
                    .map_or(aegis_common::job::Phase::WarmUp, |run| {
                        run.observation.phase_at(self.now, &self.policy)
                    }),
            },
            Stage::Stopping { why } => JobState::Stopping { why: why.clone() },
            Stage::Done { outcome } => JobState::Done {
                outcome: outcome.clone(),
            },
        }
    }

    fn holdings(&self, run: &Run) -> Vec<Holding> {
        let holding = |hold: &super::job::Hold| Holding {
            gpu: hold.gpu,
            lease: hold.budget,
            overhead: self.overhead(run, hold),
            used: run.used(hold.gpu),
            peak: hold.peak,
        };
        run.holds.iter().map(holding).collect()
    }
}
