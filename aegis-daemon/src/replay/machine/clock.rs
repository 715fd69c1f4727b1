//! What happens when: a heap of timers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a timer is for. A number (`edition`) that is no longer the current one makes it void.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The trace's next job is submitted.
    Submit,
    /// An attempt's command starts to run.
    Launched { job: usize, attempt: u32 },
    /// The next step of an attempt's plan.
    Step { job: usize, edition: u64 },
    /// An attempt's processes are gone.
    Exit { job: usize, attempt: u32 },
    /// A process's ledger and progress are read.
    Report { job: usize, edition: u64 },
    /// A GPU is sampled.
    Sample { gpu: usize, edition: u64 },
    /// The wake-up the scheduler asked for.
    Wake { edition: u64 },
}

/// Timers by moment; those of one moment in the order they were set.
#[derive(Default)]
pub(super) struct Clock {
    heap: BinaryHeap<Reverse<(u64, u64, Timer)>>,
    set: u64,
}

impl Clock {
    /// Sets a timer for that millisecond.
    pub(super) fn set(&mut self, at: u64, timer: Timer) {
        self.set += 1;
        self.heap.push(Reverse((at, self.set, timer)));
    }

    /// The next one and its moment.
    pub(super) fn next(&mut self) -> Option<(u64, Timer)> {
        self.heap.pop().map(|Reverse((at, _, timer))| (at, timer))
    }
}
