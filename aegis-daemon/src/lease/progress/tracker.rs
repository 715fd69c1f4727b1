//! The window in which a process did nothing but repeat its sequence, and the rate in it.

use super::fingerprint::{combine, fingerprint};
use super::period::period;
use super::trace::Trace;

/// Repetitions in a window: where in a repetition a look falls is left to chance, so that a rate is
/// wrong by at most one in so many (2.5 %).
const REPETITIONS: u64 = 40;
/// Shortest window, nanoseconds: a report is journalled.
const WINDOW_NS: u64 = 3_000_000_000;
/// Threads with less than one in so many launches are overlooked.
const MINOR: u64 = 50;
/// Repetitions by which the threads of one process may differ in a window.
const APART: u64 = 2;

/// How fast a process went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Which launch sequence.
    pub fingerprint: u64,
    /// Launches of one repetition, all threads.
    pub period: u64,
    /// Repetitions per 1,000,000 seconds.
    pub rate_uhz: u64,
    /// How long was measured, milliseconds.
    pub window_ms: u32,
}

/// Follows the traces of one process.
#[derive(Debug, Default)]
pub struct Tracker {
    /// When the window began, nanoseconds of the caller's clock; `None`: there is none.
    since_ns: Option<u64>,
    /// Launches of threads without a trace, at the last look.
    untraced: u64,
    threads: Vec<Thread>,
}

/// One thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// `marks` and `sum` at the last look.
    marks: u64,
    sum: u64,
    /// `marks` at the beginning of the window.
    began: u64,
    sequence: Option<Sequence>,
    /// Since the window began it launched nothing but its sequence.
    steady: bool,
}

/// What a thread repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sequence {
    length: u64,
    fingerprint: u64,
}

impl Tracker {
    /// Looks at the traces again: `marks` of each, and `read` for those that moved. `untraced` is
    /// what threads without a trace launched so far.
    ///
    /// Gives a pace once the window is long enough; the next one begins then. To be called about
    /// every second: the window begins anew at the look that finds something else.
    pub fn look(
        &mut self,
        now_ns: u64,
        untraced: u64,
        marks: &[u64],
        mut read: impl FnMut(usize) -> Option<Trace>,
    ) -> Option<Pace> {
        self.threads.resize_with(marks.len(), Thread::default);
        for (slot, (thread, marks)) in self.threads.iter_mut().zip(marks).enumerate() {
            if *marks != thread.marks {
                let read = read(slot);
                thread.follow(&read.unwrap_or_default());
            }
        }
        let unseen = std::mem::replace(&mut self.untraced, untraced) != untraced;
        let Some(since) = self.since_ns.filter(|_| !unseen && self.is_steady()) else {
            self.begin(now_ns);
            return None;
        };
        let pace = self.pace(now_ns.saturating_sub(since))?;
        self.begin(now_ns);
        Some(pace)
    }

    fn begin(&mut self, now_ns: u64) {
        self.since_ns = Some(now_ns);
        for thread in &mut self.threads {
            thread.began = thread.marks;
            thread.steady = thread.sequence.is_some();
        }
    }

    /// Threads that made a considerable part of the window's launches.
    fn major(&self) -> impl Iterator<Item = &Thread> {
        let all = self.threads.iter().map(Thread::made);
        let all = all.fold(0, u64::saturating_add);
        let major =
            move |thread: &&Thread| thread.made() > 0 && thread.made().saturating_mul(MINOR) >= all;
        self.threads.iter().filter(major)
    }

    fn is_steady(&self) -> bool {
        self.major().all(|thread| thread.steady)
    }

    fn pace(&self, window_ns: u64) -> Option<Pace> {
        let threads = self.major().filter_map(|thread| {
            let sequence = thread.sequence?;
            Some((sequence, thread.made()))
        });
        let mut threads: Vec<_> = threads.collect();
        threads.sort_unstable_by_key(|(sequence, made)| (sequence.fingerprint, *made));
        let repetitions = |(sequence, made): &(Sequence, u64)| made / sequence.length.max(1);
        let slowest = threads.iter().map(repetitions).min()?;
        let fastest = threads.iter().map(repetitions).max()?;
        if window_ns < WINDOW_NS || slowest < REPETITIONS || fastest - slowest > APART {
            return None;
        }
        let (leader, made) = threads.iter().max_by_key(|(_, made)| *made)?;
        let period = threads.iter().map(|(sequence, _)| sequence.length);
        // Launches x 10^15 ns / (launches of a repetition x ns) repetitions in 10^6 s.
        let rate = u128::from(*made).checked_mul(1_000_000_000_000_000)?
            / (u128::from(leader.length.max(1)) * u128::from(window_ns));
        let fingerprint = match threads.as_slice() {
            [(alone, _)] => alone.fingerprint,
            several => combine(several.iter().map(|(sequence, _)| sequence.fingerprint)),
        };
        Some(Pace {
            fingerprint,
            period: period.fold(0, u64::saturating_add),
            rate_uhz: u64::try_from(rate).ok()?,
            window_ms: u32::try_from(window_ns / 1_000_000).ok()?,
        })
    }
}

impl Thread {
    /// Launches in the window.
    const fn made(&self) -> u64 {
        self.marks.saturating_sub(self.began)
    }

    /// Takes what the trace says now.
    fn follow(&mut self, trace: &Trace) {
        let latest = trace.launches.as_slice();
        let length = period(latest);
        let sequence = length.and_then(|length| {
            Some(Sequence {
                length: length as u64,
                fingerprint: fingerprint(latest.get(latest.len().checked_sub(length)?..)?),
            })
        });
        let same = sequence.is_some() && sequence == self.sequence;
        let nothing_else = length.and_then(|length| {
            let made = trace.marks.checked_sub(self.marks)?;
            Some(trace.sum.wrapping_sub(self.sum) == sum_of(latest, length, made)?)
        });
        self.steady &= same && nothing_else == Some(true);
        self.sequence = sequence;
        self.marks = trace.marks;
        self.sum = trace.sum;
    }
}

/// What the last `made` launches add up to if they repeat the last `length` ones.
fn sum_of(latest: &[u64], length: usize, made: u64) -> Option<u64> {
    let add = |launches: &[u64]| launches.iter().copied().fold(0, u64::wrapping_add);
    let repetition = add(latest.get(latest.len().checked_sub(length)?..)?);
    let whole = made.checked_div(length as u64)?;
    let rest = usize::try_from(made.checked_rem(length as u64)?).ok()?;
    let rest = add(latest.get(latest.len().checked_sub(rest)?..)?);
    Some(repetition.wrapping_mul(whole).wrapping_add(rest))
}
