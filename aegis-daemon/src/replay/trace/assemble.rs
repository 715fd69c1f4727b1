//! Imported jobs as a trace: a window of them, each with a program.

use std::collections::BTreeMap;

use super::import::ImportedJob;
use super::programs::Programs;
use super::{Trace, TraceJob};
use crate::replay::number::millis;
use crate::replay::random;

/// Least time from the first launch to the end: a program needs its start in any case.
const SHORTEST_S: f64 = 1.0;

/// What the trace is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assembly {
    /// GPUs of the machine: jobs that want more are left out.
    pub gpus: u32,
    /// Memory of each, bytes: programs that do not fit are not given to jobs.
    pub gpu_memory: u64,
    /// At most that many jobs, consecutive ones of one cluster; `None`: all.
    pub jobs: Option<usize>,
    /// Divides the times between submissions.
    pub load: f64,
    /// Chooses the window and the programs.
    pub seed: u64,
}

/// What assembling had to assume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assumed {
    /// Jobs of the file.
    pub found: usize,
    /// Left out: they want more GPUs than the machine has.
    pub too_wide: usize,
    /// Jobs of the trace whose program is drawn from the catalogue.
    pub drawn: usize,
    /// Submissions are Poisson: the file does not tell when jobs came.
    pub arrivals: bool,
}

/// The trace of a file's jobs. The same arguments give the same trace.
#[must_use]
pub fn assemble(name: &str, found: &[ImportedJob], how: Assembly) -> (Trace, Assumed) {
    let mut assumed = Assumed {
        found: found.len(),
        ..Assumed::default()
    };
    let fitting: Vec<&ImportedJob> = found.iter().filter(|job| job.gpus <= how.gpus).collect();
    assumed.too_wide = found.len() - fitting.len();
    assumed.arrivals = fitting.iter().any(|job| job.submit_s.is_none());
    let window = if assumed.arrivals {
        scattered(fitting, how)
    } else {
        consecutive(fitting, how)
    };
    let submissions = if assumed.arrivals {
        poisson(&window, how)
    } else {
        let first = window.first().and_then(|job| job.submit_s).unwrap_or(0.0);
        let since = |job: &&ImportedJob| (job.submit_s.unwrap_or(first) - first) / how.load;
        window.iter().map(since).collect()
    };
    let mut programs = Programs::new(how.gpu_memory, how.seed);
    let mut jobs = Vec::with_capacity(window.len());
    for (place, (job, submit_s)) in window.into_iter().zip(submissions).enumerate() {
        let given = programs.give(job.program.as_deref(), job.gpus, place as u64);
        assumed.drawn += usize::from(given.drawn);
        jobs.push(TraceJob {
            submit_ms: millis(submit_s),
            user: 0,
            gpus: job.gpus,
            workload: given.place,
            solo_s: Some((job.duration_s - given.startup_s).max(SHORTEST_S)),
            time_limit_s: None,
            gpu_mem: None,
        });
    }
    let trace = Trace {
        name: name.to_owned(),
        workloads: programs.into_workloads(),
        jobs,
    };
    (trace, assumed)
}

/// Jobs that followed each other in one cluster; of those clusters that have enough, the seed
/// chooses one and the place in it.
fn consecutive(jobs: Vec<&ImportedJob>, how: Assembly) -> Vec<&ImportedJob> {
    let wanted = how.jobs.unwrap_or(usize::MAX);
    let mut clusters: BTreeMap<&str, Vec<&ImportedJob>> = BTreeMap::new();
    for job in jobs {
        clusters.entry(&job.cluster).or_default().push(job);
    }
    let mut clusters: Vec<Vec<&ImportedJob>> = clusters.into_values().collect();
    let most = clusters.iter().map(Vec::len).max().unwrap_or(0);
    clusters.retain(|jobs| jobs.len() >= wanted.min(most));
    let chosen = below(clusters.len(), how.seed, 0);
    let mut jobs = clusters.into_iter().nth(chosen).unwrap_or_default();
    jobs.sort_by(|a, b| {
        let at = |job: &ImportedJob| job.submit_s.unwrap_or(0.0);
        at(a).total_cmp(&at(b))
    });
    let last = jobs.len().saturating_sub(wanted);
    let start = below(last.saturating_add(1), how.seed, 1);
    jobs.into_iter().skip(start).take(wanted).collect()
}

/// Jobs from anywhere in the file: one that tells no submissions may be sorted by length.
fn scattered(mut jobs: Vec<&ImportedJob>, how: Assembly) -> Vec<&ImportedJob> {
    let wanted = how.jobs.unwrap_or(usize::MAX).min(jobs.len());
    for place in 0..wanted {
        let other = place + below(jobs.len() - place, how.seed, 2 + place as u64);
        jobs.swap(place, other);
    }
    jobs.truncate(wanted);
    jobs
}

/// Arrivals that keep the machine busy for [`Assembly::load`] of the time, seconds.
fn poisson(jobs: &[&ImportedJob], how: Assembly) -> Vec<f64> {
    let work: f64 = jobs
        .iter()
        .map(|job| job.duration_s * f64::from(job.gpus))
        .sum();
    let mean = work / jobs.len().max(1) as f64 / f64::from(how.gpus.max(1)) / how.load;
    let gaps = (0..jobs.len()).scan(0.0, |at, place| {
        let now = *at;
        *at -= mean * (1.0 - random::even(!how.seed, place as u64)).ln();
        Some(now)
    });
    gaps.collect()
}

/// A whole number from 0 that is less than `end`, by seed and purpose.
fn below(end: usize, seed: u64, purpose: u64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and `end`"
    )]
    let drawn = (random::even(seed, purpose) * end as f64) as usize;
    drawn.min(end.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOW: Assembly = Assembly {
        gpus: 4,
        gpu_memory: 40 << 30,
        jobs: Some(5),
        load: 2.0,
        seed: 3,
    };

    fn job(submit_s: Option<f64>, gpus: u32, cluster: &str) -> ImportedJob {
        ImportedJob {
            submit_s,
            gpus,
            duration_s: 600.0,
            program: None,
            cluster: cluster.to_owned(),
        }
    }

    #[test]
    fn a_window_is_of_one_cluster_and_begins_at_once() {
        let mut found: Vec<ImportedJob> = (0..20)
            .map(|at| {
                job(
                    Some(f64::from(at) * 10.0),
                    1 + u32::from(at % 5 == 0) * 7,
                    "a",
                )
            })
            .collect();
        found.extend((0..3).map(|_| job(Some(7.0), 1, "b")));
        let (trace, assumed) = assemble("t", &found, HOW);
        assert_eq!((assumed.found, assumed.too_wide, assumed.drawn), (23, 4, 5));
        assert_eq!(trace.jobs.len(), 5);
        assert_eq!(trace.jobs[0].submit_ms, 0);
        // Ten or, over a job that was left out, twenty seconds apart; the load halves it.
        for two in trace.jobs.windows(2) {
            let gap = two[1].submit_ms - two[0].submit_ms;
            assert!(gap == 5_000 || gap == 10_000, "{gap}");
        }
        assert_eq!(trace, assemble("t", &found, HOW).0);
        let all = Assembly { jobs: None, ..HOW };
        assert_eq!(assemble("t", &found, all).0.jobs.len(), 16);
    }

    #[test]
    fn run_times_alone_get_arrivals_of_the_load() {
        let found: Vec<ImportedJob> = (0..2_000).map(|_| job(None, 1, "")).collect();
        let how = Assembly {
            jobs: Some(1_000),
            ..HOW
        };
        let (trace, assumed) = assemble("t", &found, how);
        assert!(assumed.arrivals && trace.jobs.len() == 1_000);
        // 600 s on one of four GPUs, twice what the machine can do: one in 75 s.
        let span = trace.jobs.last().map_or(0, |job| job.submit_ms) as f64 / 1e3;
        assert!((span / 75_000.0 - 1.0).abs() < 0.15, "{span}");
        for job in &trace.jobs {
            let startup = trace.workloads[job.workload].startup_s;
            assert!((job.solo_s.unwrap() + startup - 600.0).abs() < 1e-9);
        }
    }

    #[test]
    fn nothing_fits_is_an_empty_trace() {
        let (trace, assumed) = assemble("t", &[job(Some(0.0), 8, "")], HOW);
        assert!(trace.jobs.is_empty() && assumed.too_wide == 1);
    }
}
