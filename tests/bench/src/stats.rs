//! Medians and their surroundings.

use serde::Serialize;

/// What repeated measurements came to, in the unit of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Stats {
    pub(crate) runs: usize,
    pub(crate) min: f64,
    pub(crate) median: f64,
    /// 95th percentile.
    pub(crate) p95: f64,
    pub(crate) max: f64,
}

impl Stats {
    /// Of at least one value; `None` without any.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let at = |index: usize| values.get(index).copied();
        Some(Self {
            runs: values.len(),
            min: at(0)?,
            median: f64::midpoint(at(last / 2)?, at(last.div_ceil(2))?),
            p95: at((values.len() * 95).div_ceil(100) - 1)?,
            max: at(last)?,
        })
    }
}

/// Nanoseconds as milliseconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "a benchmark's durations are far below 2^53 ns"
)]
pub(crate) fn ms(ns: i128) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::Stats;

    #[test]
    fn medians_and_percentiles_are_those_of_the_sorted_values() {
        let stats = Stats::of(vec![3.0, 1.0, 2.0, 10.0]).unwrap();
        assert_eq!((stats.min, stats.median, stats.max), (1.0, 2.5, 10.0));
        let stats = Stats::of((1..=100).map(f64::from).collect()).unwrap();
        assert_eq!((stats.median, stats.p95), (50.5, 95.0));
        assert_eq!(Stats::of(vec![7.0]).unwrap().p95, 7.0);
        assert_eq!(Stats::of(Vec::new()), None);
    }
}
