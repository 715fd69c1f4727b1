//! The loop that runs every policy of the AEGIS artifact (`scheduler.py`): the policy only ranks
//! the GPUs a job may join.
//!
//! * Strictly first come, first served, one job a second; the head blocks the rest.
//! * Idle GPUs are taken first, whatever the policy.
//! * A GPU is closed from a placement until 30 s after the newcomer appeared in its process list.
//! * A job that failed goes to the recovery queue. While anything is there nothing else starts and
//!   the recovering job gets idle GPUs only: the published ladder of memory floors has no effect,
//!   and recovery stalls everybody.

use std::collections::BTreeMap;

use aegis_common::action::Action;
use aegis_common::event::Event;
use aegis_common::id::{GpuIndex, JobId, Moment};

use super::Rule;
use super::board::{Board, Job, first};

/// Between two starts, milliseconds.
const TICK_MS: u64 = 1_000;
/// A GPU stays closed that long after the newcomer's first activity, milliseconds.
const CLOSED_MS: u64 = 30_000;

/// A policy of the artifact.
pub(super) trait Choice {
    /// Takes note of an event the board has already taken.
    fn take(&mut self, _event: &Event) {}

    /// The open GPUs `job` may join, best first.
    fn rank(&self, job: &Job, open: &[GpuIndex], board: &Board) -> Vec<GpuIndex>;
}

/// The artifact's loop around a policy.
pub(super) struct Artifact<C> {
    choice: C,
    /// No start before.
    next_tick: Moment,
    closed: BTreeMap<GpuIndex, Closed>,
}

/// Why a GPU takes nobody.
#[derive(Clone, Copy)]
struct Closed {
    /// The newcomer.
    job: JobId,
    /// Until when; `None`: it has not shown up yet.
    until: Option<Moment>,
}

impl<C: Choice> Artifact<C> {
    pub(super) fn new(choice: C) -> Self {
        Self {
            choice,
            next_tick: Moment(0),
            closed: BTreeMap::new(),
        }
    }

    fn open(&self, gpus: impl Iterator<Item = GpuIndex>) -> Vec<GpuIndex> {
        gpus.filter(|gpu| !self.closed.contains_key(gpu)).collect()
    }

    /// The next job to start, and where.
    fn next(&self, board: &Board) -> Option<(JobId, Vec<GpuIndex>)> {
        let recovering = board.recovering.front().copied();
        let id = recovering.or(board.queue.front().copied())?;
        let job = board.job(id)?;
        let idle = self.open(board.idle().into_iter());
        if let Some(gpus) = first(idle, job.gpus) {
            return Some((id, gpus));
        }
        if recovering.is_some() {
            return None;
        }
        let open = self.open(board.gpus.keys().copied());
        let ranked = self.choice.rank(job, &open, board);
        Some((id, first(ranked, job.gpus)?))
    }
}

impl<C: Choice> Rule for Artifact<C> {
    fn take(&mut self, at: Moment, event: &Event, _board: &Board) {
        self.choice.take(event);
        match event {
            Event::Sampled { sample } => {
                if let Some(closed) = self.closed.get_mut(&sample.gpu)
                    && closed.until.is_none()
                    && sample.jobs.iter().any(|&(job, _)| job == closed.job)
                {
                    closed.until = Some(at.plus_millis(CLOSED_MS));
                }
            }
            Event::Ended { job, .. } | Event::StartFailed { job, .. } => {
                self.closed.retain(|_, closed| closed.job != *job);
            }
            _ => {}
        }
    }

    fn pass(&mut self, at: Moment, board: &mut Board, out: &mut Vec<Action>) -> Option<Moment> {
        let expired = |closed: &Closed| closed.until.is_some_and(|until| until <= at);
        self.closed.retain(|_, closed| !expired(closed));
        if board.queue.is_empty() && board.recovering.is_empty() {
            return None;
        }
        if at < self.next_tick {
            return Some(self.next_tick);
        }
        if let Some((job, gpus)) = self.next(board) {
            for &gpu in &gpus {
                self.closed.insert(gpu, Closed { job, until: None });
            }
            board.start(job, gpus, out);
            self.next_tick = at.plus_millis(TICK_MS);
            return Some(self.next_tick);
        }
        self.closed.values().filter_map(|closed| closed.until).min()
    }
}
