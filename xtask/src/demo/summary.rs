//! The figures, and what they have to be.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use super::count::Counts;

/// Most that sharing may take of the time that one job per GPU takes.
const RATIO: f64 = 0.8;
/// Least that the saturating mix must take of it: sharing there would only have cost.
const SATURATING_RATIO: f64 = 0.97;

/// What `--json` writes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    /// What these figures are.
    measured_on: &'static str,
    jobs: usize,
    completed: usize,
    oom_events: usize,
    oom_recovered: usize,
    /// Out-of-memory ends that the driver's free memory could not have prevented.
    oom_real: usize,
    incumbent_failures: usize,
    makespan_s: f64,
    exclusive_makespan_s: f64,
    /// `makespan_s / exclusive_makespan_s`.
    ratio: f64,
    /// Mean over the jobs of the completed attempt's duration, shared over exclusive.
    mean_slowdown: f64,
    naive_failures: usize,
    saturating: Saturating,
}

/// The mix that must not be shared.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Saturating {
    jobs: usize,
    completed: usize,
    makespan_s: f64,
    exclusive_makespan_s: f64,
    ratio: f64,
    /// Pairs of jobs that were on one GPU at the same time.
    shared_pairs: usize,
    /// Why a job had to wait, in the words of `aegis explain`.
    refusal: Option<String>,
}

impl Saturating {
    /// From the run under AEGIS and the exclusive one.
    pub(crate) fn new(refused: &Counts, alone: &Counts, refusal: Option<String>) -> Self {
        Self {
            jobs: refused.jobs,
            completed: refused.completed,
            makespan_s: refused.makespan_s,
            exclusive_makespan_s: alone.makespan_s,
            ratio: refused.makespan_s / alone.makespan_s,
            shared_pairs: refused.overlaps,
            refusal,
        }
    }
}

impl Summary {
    /// From the counts of the three runs of the mix.
    pub(crate) fn new(
        shared: &Counts,
        exclusive: &Counts,
        naive_failures: usize,
        saturating: Saturating,
    ) -> Self {
        Self {
            measured_on: "simulated driver",
            jobs: shared.jobs,
            completed: shared.completed,
            oom_events: shared.oom_events,
            oom_recovered: shared.oom_recovered,
            oom_real: shared.oom_real,
            incumbent_failures: shared.incumbent_failures,
            makespan_s: shared.makespan_s,
            exclusive_makespan_s: exclusive.makespan_s,
            ratio: shared.makespan_s / exclusive.makespan_s,
            mean_slowdown: mean_slowdown(shared, exclusive),
            naive_failures,
            saturating,
        }
    }

    /// The targets that were missed, in words.
    pub(crate) fn missed(&self) -> Vec<String> {
        let busy = &self.saturating;
        let targets = [
            (self.jobs >= 10, "at least 10 jobs"),
            (self.completed == self.jobs, "all jobs completed"),
            (self.oom_events >= 2, "at least 2 jobs ran out of memory"),
            (
                self.oom_recovered == self.oom_events,
                "each of them recovered",
            ),
            (
                self.oom_real == self.oom_events,
                "memory really ran out each time",
            ),
            (
                self.incumbent_failures == 0,
                "no job failed because of a newcomer",
            ),
            (
                self.ratio <= RATIO,
                "makespan at most 0.8 of the exclusive one",
            ),
            (
                self.naive_failures >= 1,
                "without AEGIS at least one job failed",
            ),
            (busy.completed == busy.jobs, "all saturating jobs completed"),
            (busy.shared_pairs == 0, "no saturated GPU was shared"),
            (busy.refusal.is_some(), "the refusal to share was explained"),
            (
                busy.ratio >= SATURATING_RATIO,
                "saturating mix at least 0.97 of exclusive",
            ),
        ];
        let missed = targets.into_iter().filter(|(met, _)| !met);
        missed.map(|(_, words)| words.to_owned()).collect()
    }

    /// The end of the demo.
    pub(crate) fn print(&self, took: Duration) {
        let busy = &self.saturating;
        println!(
            "\ndemo: summary (simulated driver; counted from step counts and the driver's journal)"
        );
        println!(
            "  jobs completed            {} of {}",
            self.completed, self.jobs
        );
        println!(
            "  out of memory, recovered  {} of {}",
            self.oom_recovered, self.oom_events
        );
        println!("  failed for a newcomer     {}", self.incumbent_failures);
        println!(
            "  makespan                  {:.1} s shared, {:.1} s exclusive: {:.2}",
            self.makespan_s, self.exclusive_makespan_s, self.ratio
        );
        println!("  mean slowdown of a job    {:.2}", self.mean_slowdown);
        println!(
            "  failed without AEGIS      {} of {}",
            self.naive_failures, self.jobs
        );
        println!(
            "  saturating jobs           {} of {} done, {:.1} s, exclusive {:.1} s: {:.2}, {} shared a GPU",
            busy.completed,
            busy.jobs,
            busy.makespan_s,
            busy.exclusive_makespan_s,
            busy.ratio,
            busy.shared_pairs
        );
        if let Some(refusal) = &busy.refusal {
            println!("  not shared because        {refusal}");
        }
        println!("  the demo took             {:.0} s", took.as_secs_f64());
    }

    /// Writes the figures.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).context("figures")?;
        std::fs::write(path, text + "\n")
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Over the jobs that completed in both runs; 0 if there are none.
fn mean_slowdown(shared: &Counts, exclusive: &Counts) -> f64 {
    let pairs = shared.durations_s.iter().zip(&exclusive.durations_s);
    let slowdowns: Vec<f64> = pairs
        .filter_map(|(with, alone)| Some((*with)? / (*alone)?))
        .collect();
    #[expect(clippy::cast_precision_loss, reason = "a dozen jobs")]
    let count = slowdowns.len().max(1) as f64;
    slowdowns.iter().sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(makespan_s: f64) -> Counts {
        Counts {
            jobs: 12,
            completed: 12,
            oom_events: 2,
            oom_recovered: 2,
            oom_real: 2,
            makespan_s,
            durations_s: vec![Some(makespan_s / 4.0), None],
            ..Counts::default()
        }
    }

    fn summary(change: impl Fn(&mut Counts)) -> Summary {
        let mut shared = counts(30.0);
        change(&mut shared);
        let saturating = Saturating::new(&counts(20.0), &counts(20.0), Some("busy".to_owned()));
        Summary::new(&shared, &counts(50.0), 3, saturating)
    }

    #[test]
    fn the_targets_are_met_by_a_good_run_only() {
        assert!(summary(|_| {}).missed().is_empty());
        let bad: [fn(&mut Counts); 6] = [
            |c| c.completed = 11,
            |c| c.oom_events = 3,
            |c| c.oom_real = 1,
            |c| c.incumbent_failures = 1,
            |c| c.makespan_s = 41.0,
            |c| c.jobs = 9,
        ];
        for change in bad {
            assert!(!summary(change).missed().is_empty());
        }
        let sharing = Saturating::new(&counts(19.0), &counts(20.0), None);
        let missed = Summary::new(&counts(30.0), &counts(50.0), 0, sharing).missed();
        assert_eq!(missed.len(), 3, "{missed:?}");
    }

    #[test]
    fn the_json_has_the_promised_fields() {
        let value = serde_json::to_value(summary(|_| {})).unwrap();
        for field in [
            "jobs",
            "completed",
            "oom_events",
            "oom_recovered",
            "incumbent_failures",
            "makespan_s",
            "exclusive_makespan_s",
            "ratio",
            "mean_slowdown",
            "naive_failures",
            "saturating",
        ] {
            assert!(value.get(field).is_some(), "{field}");
        }
        assert!((summary(|_| {}).mean_slowdown - 0.6).abs() < 1e-9);
    }
}
