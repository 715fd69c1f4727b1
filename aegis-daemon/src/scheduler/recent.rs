//! The smallest of recent measurements.

use std::collections::VecDeque;

use aegis_common::id::Moment;
use serde::{Deserialize, Serialize};

/// How long a measurement counts, milliseconds. NVML's process lists are read once a second, so a
/// figure that combines them with fresher ones can be wrong for that long; two seconds always
/// hold a consistent one.
const WINDOW_MS: u64 = 2_000;

/// The minimum of the measurements of the last two seconds: filters the transients that arise when
/// figures read at different moments are subtracted from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecentMin {
    /// Ascending in both moment and value, so the front is the minimum.
    entries: VecDeque<(Moment, u64)>,
}

impl RecentMin {
    /// Takes a measurement.
    pub(super) fn push(&mut self, at: Moment, value: u64) {
        while self.entries.back().is_some_and(|&(_, last)| last >= value) {
            self.entries.pop_back();
        }
        self.entries.push_back((at, value));
        while self
            .entries
            .front()
            .is_some_and(|&(taken, _)| at.millis_since(taken) > WINDOW_MS)
        {
            self.entries.pop_front();
        }
    }

    /// The minimum; `None` before the first measurement.
    pub(super) fn min(&self) -> Option<u64> {
        self.entries.front().map(|&(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::RecentMin;
    use aegis_common::id::Moment;

    #[test]
    fn a_spike_is_ignored_and_a_lasting_rise_is_not() {
        let mut recent = RecentMin::default();
        recent.push(Moment(0), 5);
        recent.push(Moment(1_000), 50);
        assert_eq!(recent.min(), Some(5));
        recent.push(Moment(2_500), 40);
        assert_eq!(recent.min(), Some(40));
        recent.push(Moment(2_600), 3);
        assert_eq!(recent.min(), Some(3));
    }
}
