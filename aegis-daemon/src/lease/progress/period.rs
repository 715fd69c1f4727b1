//! The shortest sequence that the latest launches repeat.

/// Launches that must repeat, however short the sequence is.
const LEAST: usize = 32;
/// Repetitions that must be seen.
const REPETITIONS: usize = 2;

/// The length of the sequence of which the longest possible stretch of the latest launches is a
/// repetition; `None` if they repeat nothing.
///
/// A loop inside a training step repeats too, but the stretch of whole steps is longer.
pub(super) fn period(launches: &[u64]) -> Option<usize> {
    // Backwards, a stretch of the latest launches is a prefix. By Knuth, Morris and Pratt: the
    // longest proper prefix that is also a suffix of the first n is n less their shortest period.
    let latest: Vec<u64> = launches.iter().rev().copied().collect();
    let mut borders: Vec<usize> = Vec::with_capacity(latest.len());
    let mut found = None;
    let mut border = 0;
    for (index, launch) in latest.iter().enumerate() {
        if index > 0 {
            while border > 0 && latest.get(border) != Some(launch) {
                border = border
                    .checked_sub(1)
                    .and_then(|last| borders.get(last).copied())
                    .unwrap_or(0);
            }
            if latest.get(border) == Some(launch) {
                border += 1;
            }
        }
        borders.push(border);
        let seen = index + 1;
        let period = seen - border;
        if seen >= LEAST && period * REPETITIONS <= seen {
            found = Some(period);
        }
    }
    found
}
