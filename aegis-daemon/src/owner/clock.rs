//! The daemon's one source of [`Moment`]s.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use aegis_common::id::Moment;

/// Milliseconds that begin with the wall clock's (or the newest moment in the journal, if that is
/// later) and go on with the monotonic clock's.
///
/// A wall clock that is set while the daemon runs must not end jobs by their time limit, nor stop
/// the time in which waiting requests are answered.
#[derive(Debug)]
pub struct Clock {
    base: Moment,
    since: Instant,
}

impl Clock {
    /// A clock that continues after `last`.
    #[must_use]
    pub fn after(last: Moment) -> Self {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |elapsed| millis(elapsed.as_millis()));
        Self {
            base: Moment(wall.max(last.0)),
            since: Instant::now(),
        }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.base
            .plus_millis(millis(self.since.elapsed().as_millis()))
    }
}

fn millis(millis: u128) -> u64 {
    u64::try_from(millis).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Clock, Moment};

    #[test]
    fn a_journal_from_the_future_neither_turns_time_back_nor_stops_it() {
        let future = Moment(u64::MAX / 2);
        let clock = Clock::after(future);
        let before = clock.now();
        assert!(before >= future);
        while clock.now() == before {
            std::thread::yield_now();
        }
        assert!(clock.now() > before);
        assert!(Clock::after(Moment(u64::MAX)).now() == Moment(u64::MAX));
    }
}
