//! The smallest of recent measurements.

use std::collections::VecDeque;

use aegis_common::id::Moment;
use serde::{Deserialize, Serialize};

/// How long a measurement counts, milliseconds. NVML's process lists are read once a second, so a
/// figure that combines them with fresher ones can be wrong for that long; two seconds always
/// hold a consistent one.
const WINDOW_MS: u64 = 2_000;

/// The minimum of the figures that stood at some time within the last two seconds: filters the
/// transients that arise when figures read at different moments are subtracted from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecentMin {
    /// Figures and when each was last known to stand; ascending in both.
    entries: VecDeque<(Moment, u64)>,
}

impl RecentMin {
    /// Takes a measurement. The one before stood until now.
    pub(super) fn push(&mut self, at: Moment, value: u64) {
        if let Some((until, _)) = self.entries.back_mut() {
            *until = at;
        }
        while self.entries.back().is_some_and(|&(_, last)| last >= value) {
            self.entries.pop_back();
        }
        self.entries.push_back((at, value));
        while self.entries.len() > 1 && self.entries.front().is_some_and(|e| old(e, at)) {
            self.entries.pop_front();
        }
    }

    /// The minimum at `now`; `None` before the first measurement.
    pub(super) fn min(&self, now: Moment) -> Option<u64> {
        let recent = self.entries.iter().find(|entry| !old(entry, now));
        recent.or(self.entries.back()).map(|&(_, value)| value)
    }
}

fn old(&(until, _): &(Moment, u64), now: Moment) -> bool {
    now.millis_since(until) > WINDOW_MS
}

#[cfg(test)]
mod tests {
    use super::RecentMin;
    use aegis_common::id::Moment;

    #[test]
    fn a_spike_is_ignored_and_a_lasting_rise_is_not() {
        let mut recent = RecentMin::default();
        recent.push(Moment(0), 5);
        // The 5 stood until now, however long ago it was measured.
        recent.push(Moment(9_000), 50);
        assert_eq!(recent.min(Moment(11_000)), Some(5));
        assert_eq!(recent.min(Moment(11_001)), Some(50));
        recent.push(Moment(11_500), 40);
        assert_eq!(recent.min(Moment(11_500)), Some(40));
        recent.push(Moment(11_600), 3);
        assert_eq!(recent.min(Moment(11_600)), Some(3));
    }
}
