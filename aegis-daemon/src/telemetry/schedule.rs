//! What is to be read when. Pure: time is handed in.

use std::time::{Duration, Instant};

/// Between readings while no job runs or waits.
const IDLE: Duration = Duration::from_secs(10);
/// Refreshes asked for are served this far apart in the long run.
const REFRESH_MIN: Duration = Duration::from_millis(100);
/// The same for process lists, by far the slowest call.
const REFRESH_PROCESSES_MIN: Duration = Duration::from_millis(250);
/// Refreshes served at once after a quiet time: a submission, and a job's end with the ends of
/// its processes.
const REFRESH_BURST: u32 = 3;

/// How often to read what while jobs run or wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Intervals {
    pub(super) memory: Duration,
    pub(super) activity: Duration,
    pub(super) processes: Duration,
}

/// Readings that are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) memory: bool,
    pub(super) activity: bool,
    pub(super) processes: bool,
    /// Somebody waits for the news, even if nothing changed.
    pub(super) asked: bool,
}

impl Due {
    pub(super) fn any(self) -> bool {
        self.memory || self.activity || self.processes
    }
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    interval: Duration,
    /// Between refreshes in the long run.
    refresh_min: Duration,
    last: Option<Instant>,
    next: Instant,
    /// When all readings so far would have been done had they been `refresh_min` apart (a leaky
    /// bucket).
    settled: Instant,
}

impl Timer {
    fn new(interval: Duration, refresh_min: Duration, now: Instant) -> Self {
        Self {
            interval,
            refresh_min,
            last: None,
            next: now,
            settled: now,
        }
    }

    fn take(&mut self, now: Instant, active: bool) -> bool {
        if now < self.next {
            return false;
        }
        self.last = Some(now);
        self.next = now + self.pause(active);
        self.settled = self.settled.max(now) + self.refresh_min;
        true
    }

    fn pause(&self, active: bool) -> Duration {
        if active {
            self.interval
        } else {
            self.interval.max(IDLE)
        }
    }

    /// As soon as it would have been at `interval`.
    fn wake(&mut self, now: Instant) {
        let soonest = self.last.map_or(now, |last| now.max(last + self.interval));
        self.next = self.next.min(soonest);
    }

    /// At once, unless there were many refreshes lately.
    fn refresh(&mut self, now: Instant) {
        let ahead = self.settled.saturating_duration_since(now);
        let wait = ahead.saturating_sub(self.refresh_min * REFRESH_BURST);
        self.next = self.next.min(now + wait);
    }
}

/// When the next readings are due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    active: bool,
    asked: bool,
    memory: Timer,
    activity: Timer,
    processes: Timer,
}

impl Schedule {
    /// Everything is due at once.
    pub(super) fn new(intervals: Intervals, active: bool, now: Instant) -> Self {
        Self {
            active,
            asked: false,
            memory: Timer::new(intervals.memory, REFRESH_MIN, now),
            // Never refreshed: counters need their span.
            activity: Timer::new(intervals.activity, intervals.activity, now),
            processes: Timer::new(intervals.processes, REFRESH_PROCESSES_MIN, now),
        }
    }

    /// What is due now; it is taken to be read.
    pub(super) fn take_due(&mut self, now: Instant) -> Due {
        let memory = self.memory.take(now, self.active);
        Due {
            memory,
            activity: self.activity.take(now, self.active),
            processes: self.processes.take(now, self.active),
            asked: memory && std::mem::take(&mut self.asked),
        }
    }

    /// How long nothing is due.
    pub(super) fn pause(&self, now: Instant) -> Duration {
        let next = self.memory.next.min(self.activity.next);
        next.min(self.processes.next).saturating_duration_since(now)
    }

    /// Memory and process lists are wanted now.
    pub(super) fn refresh(&mut self, now: Instant) {
        self.asked = true;
        self.memory.refresh(now);
        self.processes.refresh(now);
    }

    /// Activity is wanted `pause` from now.
    pub(super) fn activity_after(&mut self, now: Instant, pause: Duration) {
        self.activity.next = self.activity.next.min(now + pause);
    }

    /// Whether jobs run or wait. Becoming active makes everything due that would have been.
    pub(super) fn set_active(&mut self, active: bool, now: Instant) {
        if active && !self.active {
            for timer in [&mut self.memory, &mut self.activity, &mut self.processes] {
                timer.wake(now);
            }
        }
        self.active = active;
    }

    /// How old a value may be that is read at `interval` before it is stale.
    pub(super) fn fresh_for(&self, interval: Duration) -> Duration {
        let pause = if self.active {
            interval
        } else {
            interval.max(IDLE)
        };
        pause * 2 + pause / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVALS: Intervals = Intervals {
        memory: Duration::from_millis(250),
        activity: Duration::from_secs(1),
        processes: Duration::from_secs(1),
    };

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Runs the schedule for `span`; how often memory, activity and processes were read.
    fn reads(schedule: &mut Schedule, from: Instant, span: Duration) -> [u32; 3] {
        let mut counts = [0; 3];
        let mut now = from;
        while now < from + span {
            let due = schedule.take_due(now);
            for (count, due) in counts
                .iter_mut()
                .zip([due.memory, due.activity, due.processes])
            {
                *count += u32::from(due);
            }
            now += schedule.pause(now);
        }
        counts
    }

    #[test]
    fn each_value_is_read_at_its_own_interval() {
        let now = Instant::now();
        let mut schedule = Schedule::new(INTERVALS, true, now);
        assert_eq!(reads(&mut schedule, now, millis(10_000)), [40, 10, 10]);
    }

    #[test]
    fn an_idle_machine_is_read_rarely_until_a_job_comes() {
        let now = Instant::now();
        let mut schedule = Schedule::new(INTERVALS, false, now);
        assert_eq!(reads(&mut schedule, now, millis(60_000)), [6, 6, 6]);
        let later = now + millis(55_000);
        schedule.set_active(true, later);
        assert_eq!(schedule.pause(later), Duration::ZERO);
        assert_eq!(reads(&mut schedule, later, millis(1_000)), [4, 1, 1]);
    }

    #[test]
    fn refreshes_come_soon_but_cannot_flood_the_driver() {
        let now = Instant::now();
        let mut schedule = Schedule::new(INTERVALS, true, now);
        schedule.take_due(now);
        let at = now + millis(10);
        for _ in 0..REFRESH_BURST {
            schedule.refresh(at);
            schedule.refresh(at);
            let due = schedule.take_due(at);
            assert!(due.memory && due.processes && due.asked && !due.activity);
        }
        // From now on 100 and 250 ms apart: the first reading of all was 10 ms ago.
        schedule.refresh(at);
        assert_eq!(schedule.take_due(at), Due::default());
        assert_eq!(schedule.pause(at), millis(90));
        let due = schedule.take_due(now + millis(100));
        assert!(due.memory && due.asked && !due.processes);
        let due = schedule.take_due(now + millis(250));
        assert!(due.processes && !due.asked);
        // Long after the last reading a refresh is served at once.
        let mut idle = Schedule::new(INTERVALS, false, now);
        idle.take_due(now);
        let at = now + millis(5_000);
        idle.refresh(at);
        let due = idle.take_due(at);
        assert!(due.memory && due.processes && !due.activity);
    }
}
