//! The scheduler core's only output.

use serde::{Deserialize, Serialize};

use crate::id::{GpuIndex, JobId, Moment, ProcessKey};
use crate::job::{OnSuspend, Outcome};
use crate::learned::Observed;
use crate::reason::{Denial, RetryReason, StopReason};

/// What the daemon shall do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Start the attempt on these GPUs. Idempotent: the attempt's start record decides.
    Start {
        /// The job.
        job: JobId,
        /// The attempt, from 1.
        attempt: u32,
        /// Where, in rank order.
        gpus: Vec<GpuIndex>,
        /// Total that its processes shall see on each GPU, bytes; `None`: the real one.
        virtual_total: Option<u64>,
    },
    /// End the attempt's process tree. Idempotent.
    Stop {
        /// The job.
        job: JobId,
        /// The attempt.
        attempt: u32,
        /// Why.
        why: StopReason,
        /// By what means.
        #[serde(default)]
        how: StopHow,
    },
    /// Write a lease line.
    SetLease {
        /// The process.
        process: ProcessKey,
        /// Where.
        gpu: GpuIndex,
        /// Bytes it may hold; `u64::MAX` denies nothing.
        limit: u64,
        /// The job is the oldest resident there.
        oldest: bool,
    },
    /// Answer a [`crate::event::Event::Grow`].
    Answer {
        /// Its number.
        request: u64,
        /// The decision.
        answer: GrowAnswer,
    },
    /// The job is over; keep its final record.
    Finish {
        /// The job.
        job: JobId,
        /// How.
        outcome: Outcome,
    },
    /// A further attempt will follow; the job is pending again.
    Retry {
        /// The job.
        job: JobId,
        /// The coming attempt.
        attempt: u32,
        /// Why.
        why: RetryReason,
    },
    /// Keep what the attempt taught. Comes right before the attempt's Finish or Retry.
    Learn {
        /// The job.
        job: JobId,
        /// What was seen.
        observed: Observed,
    },
    /// Send [`crate::event::Event::Woken`] at that moment. Replaces any earlier one.
    WakeAt {
        /// When.
        at: Moment,
    },
}

/// How an attempt is made to leave its GPUs. A means that keeps the process (the CUDA checkpoint
/// API) would be a further variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum StopHow {
    /// SIGTERM, a grace period, then SIGKILL.
    #[default]
    Terminate,
    /// The signal the job declared, time to save its state and exit, then as [`Self::Terminate`].
    Suspend {
        /// What was declared.
        on_suspend: OnSuspend,
    },
}

/// The decision about a `grow`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum GrowAnswer {
    /// The lease line already allows it (a [`Action::SetLease`] came before).
    Granted {
        /// The new limit, bytes.
        limit: u64,
    },
    /// A final answer follows within this time.
    Wait {
        /// Milliseconds.
        wait_ms: u32,
    },
    /// Refused.
    Denied {
        /// Why.
        why: Denial,
    },
}

impl Action {
    /// Whether every event so far must be on disk before it is carried out.
    #[must_use]
    pub const fn needs_journal(&self) -> bool {
        matches!(
            self,
            Self::Start { .. } | Self::Stop { .. } | Self::Finish { .. } | Self::Retry { .. }
        )
    }
}
