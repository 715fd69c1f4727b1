//! What a replay gave.

use aegis_common::action::Action;
use aegis_common::event::Stamped;
use aegis_common::id::GpuIndex;
use aegis_common::job;
use aegis_common::learned::Observed;
use aegis_common::reason::StopReason;

/// A replayed trace. Moments are milliseconds after the trace's beginning.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The machine's GPUs.
    pub gpus: u32,
    /// One per job of the trace, in its order.
    pub jobs: Vec<JobOutcome>,
    /// What ended attempts taught, in order: the place of the job in the trace and the record.
    pub taught: Vec<(usize, Observed)>,
    /// How many events the scheduler was told.
    pub steps: u64,
    /// Every event with its actions, if the configuration asks for it.
    pub journal: Vec<(Stamped, Vec<Action>)>,
    /// The GPUs over time, if the configuration asks for it.
    pub series: Vec<Point>,
}

/// What became of one job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOutcome {
    /// When it was submitted.
    pub submitted_ms: u64,
    /// When it was over; `None`: never, the policy left it waiting.
    pub ended_ms: Option<u64>,
    /// How it ended.
    pub outcome: Option<job::Outcome>,
    /// GPUs it asked for.
    pub gpus: u32,
    /// What it needs alone from the start of its command to its end, seconds.
    pub solo_s: f64,
    /// Those that started, in order.
    pub attempts: Vec<AttemptOutcome>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptOutcome {
    /// From 1.
    pub number: u32,
    /// Where, in rank order.
    pub gpus: Vec<GpuIndex>,
    /// When its command started.
    pub started_ms: u64,
    /// When its processes were gone.
    pub ended_ms: u64,
    /// Why it ended.
    pub end: AttemptEnd,
    /// Whether another job was the cause of its end.
    pub hurt: Hurt,
    /// How long its allocations waited for room.
    pub waited_ms: u64,
    /// Running time whose result was thrown away, milliseconds.
    pub lost_ms: u64,
}

/// Why an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptEnd {
    /// Its work was done.
    Done,
    /// It did not get the memory it needed.
    OutOfMemory {
        /// Where.
        gpu: GpuIndex,
        /// The refused request.
        bytes: u64,
        /// The GPU itself was full; false: the scheduler refused.
        physical: bool,
    },
    /// It was stopped and its work thrown away.
    Stopped {
        /// Why.
        why: StopReason,
    },
    /// It was stopped and saved its work.
    Suspended {
        /// Why.
        why: StopReason,
    },
}

/// Whether an attempt ended, was suspended, or was denied memory for good because of another job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hurt {
    /// No: it ended by itself, or would have done so alone.
    No,
    /// Because of jobs that were there first.
    ByOlder,
    /// Because of a job that came later: what an incumbent must never suffer.
    ByYounger,
}

/// A GPU at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// When.
    pub at_ms: u64,
    /// Which.
    pub gpu: GpuIndex,
    /// Bytes in use.
    pub used: u64,
    /// SM activity, a share of 1.
    pub sm_active: f64,
    /// Jobs there.
    pub residents: usize,
}

impl AttemptOutcome {
    /// How long it ran, milliseconds.
    #[must_use]
    pub const fn ran_ms(&self) -> u64 {
        self.ended_ms.saturating_sub(self.started_ms)
    }
}
