//! Jobs and attempts as they really are.

use aegis_common::id::ProcessKey;
use aegis_common::job::Exit;

use super::plan::Step;
use crate::replay::outcome::{AttemptEnd, AttemptOutcome, Hurt};

/// A job of the trace.
#[derive(Default)]
pub(super) struct Job {
    /// Where it is.
    pub(super) stage: JobStage,
    /// The attempt in progress.
    pub(super) attempt: Option<Attempt>,
    /// Seconds of its work that are saved.
    pub(super) saved_s: f64,
    /// When its first attempt started: its seniority.
    pub(super) first_started: Option<u64>,
    /// When it was over, and how.
    pub(super) ended: Option<(u64, aegis_common::job::Outcome)>,
    /// Attempts that are over.
    pub(super) attempts: Vec<AttemptOutcome>,
}

/// Where a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum JobStage {
    /// Not submitted yet.
    #[default]
    Unborn,
    /// Waits for GPUs.
    Pending,
    /// With one.
    Live,
    /// Its attempt is over; the scheduler has not said what follows.
    Undecided,
    /// Finished.
    Over,
}

/// An attempt in progress.
pub(super) struct Attempt {
    pub(super) number: u32,
    /// Its GPUs, in rank order.
    pub(super) gpus: Vec<Share>,
    pub(super) stage: Stage,
    /// When its command started.
    pub(super) started: u64,
    /// Milliseconds of running alone that its plan has advanced, as of `settled`.
    pub(super) position: f64,
    /// When `position` was brought up to date.
    pub(super) settled: u64,
    /// By how much `position` advances in a millisecond.
    pub(super) rate: f64,
    /// What happens when `position` reaches what.
    pub(super) plan: Vec<(f64, Step)>,
    /// The next step of the plan.
    pub(super) next: usize,
    /// Where on the plan the first launch is.
    pub(super) launch_at: f64,
    /// Seconds of work that were done before.
    pub(super) resumed_s: f64,
    /// The step timer that counts; `None`: it must be set.
    pub(super) armed: Option<u64>,
    /// The report timer that counts.
    pub(super) report: u64,
    /// When progress was last measured from.
    pub(super) measured: u64,
    /// The pause before the next report, milliseconds.
    pub(super) pause: u64,
    /// Its process introduced itself or was found.
    pub(super) attached: bool,
    /// It has launched.
    pub(super) launched: bool,
    /// It runs its other launch sequence.
    pub(super) evaluating: bool,
    /// The share of its peak that it is allocating.
    pub(super) target: f64,
    /// The request for memory in progress.
    pub(super) ask: Option<Ask>,
    /// How long allocations waited, milliseconds.
    pub(super) waited: u64,
    /// How it will have ended, once it is leaving.
    pub(super) leaving: Option<Leaving>,
}

/// What an attempt has on one GPU.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub(super) gpu: usize,
    /// Bytes at its peak.
    pub(super) peak: u64,
    /// Bytes held, context excluded.
    pub(super) held: u64,
    /// Bytes of its context.
    pub(super) context: u64,
    /// Bytes it may hold without asking.
    pub(super) limit: u64,
}

/// What an attempt is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its command does not run yet.
    Launching,
    /// It advances.
    Running,
    /// An allocation waits for an answer.
    Waiting,
    /// It saves its state, dies or is being killed.
    Leaving,
}

/// A request for memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) request: u64,
    /// Which of its GPUs.
    pub(super) share: usize,
    pub(super) bytes: u64,
    pub(super) try_number: u32,
    pub(super) since: u64,
}

/// How an attempt will have ended.
#[derive(Clone, Debug)]
pub(super) struct Leaving {
    pub(super) exit: Exit,
    pub(super) end: AttemptEnd,
    pub(super) hurt: Hurt,
    /// Seconds of the job's work that will be saved.
    pub(super) saved_s: f64,
}

impl Attempt {
    /// One that was just given its GPUs.
    pub(super) fn new(number: u32, gpus: Vec<Share>, now: u64) -> Self {
        Self {
            number,
            gpus,
            stage: Stage::Launching,
            started: now,
            position: 0.0,
            settled: now,
            rate: 0.0,
            plan: Vec::new(),
            next: 0,
            launch_at: 0.0,
            resumed_s: 0.0,
            armed: None,
            report: 0,
            measured: now,
            pause: 0,
            attached: false,
            launched: false,
            evaluating: false,
            target: 0.0,
            ask: None,
            waited: 0,
            leaving: None,
        }
    }

    /// Its one process.
    pub(super) fn process(&self, job: usize) -> ProcessKey {
        ProcessKey {
            pid: u32::try_from(job + 1_000).unwrap_or(u32::MAX),
            start_ticks: u64::from(self.number),
        }
    }

    /// It launches kernels: it uses its GPUs and presses on others.
    pub(super) fn active(&self) -> bool {
        self.stage == Stage::Running && self.launched
    }

    /// Brings the position up to date.
    pub(super) fn settle(&mut self, now: u64) {
        self.position += self.rate * now.saturating_sub(self.settled) as f64;
        self.settled = now;
    }

    /// Seconds of the job's work that are done, as of `settled`.
    pub(super) fn work_s(&self) -> f64 {
        self.resumed_s + (self.position - self.launch_at).max(0.0) / 1000.0
    }
}
