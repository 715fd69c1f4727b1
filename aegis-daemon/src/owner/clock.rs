//! The daemon's one source of [`Moment`]s.

use std::time::{SystemTime, UNIX_EPOCH};

use aegis_common::id::Moment;

/// Wall-clock milliseconds that never go back, across restarts too: it starts from the newest
/// moment in the journal.
#[derive(Debug)]
pub struct Clock {
    last: Moment,
}

impl Clock {
    /// A clock that continues after `last`.
    #[must_use]
    pub const fn after(last: Moment) -> Self {
        Self { last }
    }

    /// Now, or the last moment given out if the wall clock was set back.
    pub fn now(&mut self) -> Moment {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |elapsed| {
                u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
            });
        self.last = Moment(wall.max(self.last.0));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, Moment};

    #[test]
    fn a_journal_from_the_future_does_not_turn_time_back() {
        let future = Moment(u64::MAX - 1);
        let mut clock = Clock::after(future);
        assert_eq!(clock.now(), future);
    }
}
