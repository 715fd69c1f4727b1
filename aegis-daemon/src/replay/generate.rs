//! Traces from published marginals.
//!
//! Each [`Shape`] has the inter-arrival times, span and GPU demand that the AEGIS artifact
//! published for the 60-job window it cut from that production trace (its trace builder's
//! manifests; 3 GPUs):
//!
//! | shape | 1/2-GPU jobs | span s | inter-arrival p50 / p95 s |
//! |---|---|---|---|
//! | Philly | 58 / 2 | 9,404 | 8 / 600 |
//! | Saturn | 56 / 4 | 2,409 | 5 / 204 |
//! | Venus | 57 / 3 | 18,831 | 84.5 / 1,302 |
//!
//! Inter-arrival times are log-normal through the two quantiles, scaled to the span. As there, a
//! job runs a program of the catalogue with its GPU demand, nearly each program as often as any
//! other, whatever the production job was.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64Mcg;

use super::catalogue;
use super::number::millis;
use super::trace::{Trace, TraceJob};
use super::workload::Workload;

/// Users of a generated trace; the first ones submit most.
const USERS: u32 = 8;
/// The 95 % quantile of the standard normal distribution.
const Z95: f64 = 1.644_854;

/// Which published trace it resembles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Microsoft's Philly: bursts within two and a half hours.
    Philly,
    /// `SenseTime`'s Saturn: nearly a batch.
    Saturn,
    /// `SenseTime`'s Venus: spread over five hours.
    Venus,
    /// Poisson arrivals that keep the machine busy for this load.
    Open,
}

impl Shape {
    /// The published ones.
    pub const PUBLISHED: [Self; 3] = [Self::Philly, Self::Saturn, Self::Venus];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Philly => "philly",
            Self::Saturn => "saturn",
            Self::Venus => "venus",
            Self::Open => "open",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Philly, Self::Saturn, Self::Venus, Self::Open];
        all.into_iter().find(|shape| shape.name() == name)
    }

    /// Of 60 jobs these many ask for two GPUs.
    const fn pairs_of_60(self) -> usize {
        match self {
            Self::Philly => 2,
            Self::Saturn => 4,
            Self::Venus | Self::Open => 3,
        }
    }

    /// Inter-arrival p50, p95 and span of 60 jobs on 3 GPUs, seconds.
    const fn arrivals(self) -> (f64, f64, f64) {
        match self {
            Self::Philly => (8.0, 600.0, 9_404.0),
            Self::Saturn => (5.0, 204.0, 2_409.0),
            Self::Venus | Self::Open => (84.5, 1_302.0, 18_831.0),
        }
    }
}

/// A trace of that shape: `jobs` jobs for a machine of `gpus` GPUs. `load` divides the times
/// between submissions; for [`Shape::Open`] it is the offered share of the machine. The same
/// arguments give the same trace.
#[must_use]
pub fn generate(shape: Shape, jobs: usize, gpus: u32, load: f64, seed: u64) -> Trace {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ ((shape as u64) << 56));
    let workloads = catalogue::workloads();
    let pairs = (jobs * shape.pairs_of_60()).div_ceil(60).min(jobs);
    let mut programs = draw(&workloads, 1, jobs - pairs, &mut random);
    programs.extend(draw(&workloads, 2, pairs, &mut random));
    programs.shuffle(&mut random);
    let submissions = match shape {
        Shape::Open => poisson(&workloads, &programs, gpus, load, &mut random),
        _ => published(shape, jobs, gpus, load, &mut random),
    };
    let jobs = programs.iter().zip(submissions);
    let jobs = jobs.map(|(&program, submit_ms)| TraceJob {
        submit_ms,
        user: user(&mut random),
        gpus: workloads.get(program).map_or(1, |workload| workload.gpus),
        workload: program,
        solo_s: None,
        time_limit_s: None,
        gpu_mem: None,
    });
    Trace {
        name: format!("{} {seed}", shape.name()),
        jobs: jobs.collect(),
        workloads,
    }
}

/// Programs of that many GPUs: each once before any comes again.
fn draw(workloads: &[Workload], gpus: u32, count: usize, random: &mut Pcg64Mcg) -> Vec<usize> {
    let fitting = workloads.iter().enumerate();
    let fitting: Vec<usize> = fitting
        .filter(|(_, workload)| workload.gpus == gpus)
        .map(|(index, _)| index)
        .collect();
    let mut drawn = Vec::with_capacity(count);
    while drawn.len() < count && !fitting.is_empty() {
        let mut round = fitting.clone();
        round.shuffle(random);
        round.truncate(count - drawn.len());
        drawn.extend(round);
    }
    drawn
}

/// Submissions with the published quantiles and span, milliseconds, ascending.
fn published(shape: Shape, jobs: usize, gpus: u32, load: f64, random: &mut Pcg64Mcg) -> Vec<u64> {
    let (p50, p95, span) = shape.arrivals();
    let sigma = (p95 / p50).ln() / Z95;
    let gaps: Vec<f64> = (1..jobs)
        .map(|_| {
            let normal: f64 = StandardNormal.sample(random);
            // Beyond the third deviation a single gap would be longer than the span.
            p50 * (sigma * normal.clamp(-3.0, 3.0)).exp()
        })
        .collect();
    // A machine of twice the size sees twice the jobs in the same time.
    let wanted = span * (jobs as f64 - 1.0) / 59.0 * 3.0 / f64::from(gpus.max(1)) / load;
    let total: f64 = gaps.iter().sum();
    let scale = if total > 0.0 { wanted / total } else { 0.0 };
    cumulated(gaps.iter().map(|gap| gap * scale))
}

fn poisson(
    workloads: &[Workload],
    programs: &[usize],
    gpus: u32,
    load: f64,
    random: &mut Pcg64Mcg,
) -> Vec<u64> {
    let work = programs
        .iter()
        .filter_map(|&program| workloads.get(program));
    let work: f64 = work
        .map(|workload| (workload.startup_s + workload.solo_s) * f64::from(workload.gpus))
        .sum();
    let mean = work / programs.len().max(1) as f64 / f64::from(gpus.max(1)) / load;
    let gaps = (1..programs.len()).map(|_| -mean * (1.0 - random.random::<f64>()).ln());
    cumulated(gaps.collect::<Vec<_>>().into_iter())
}

fn cumulated(gaps: impl Iterator<Item = f64>) -> Vec<u64> {
    let ends = gaps.scan(0.0, |at, gap| {
        *at += gap;
        Some(*at)
    });
    std::iter::once(0.0).chain(ends).map(millis).collect()
}

/// Each user submits half as much again as the next one.
fn user(random: &mut Pcg64Mcg) -> u32 {
    let chance = 1.0 / 3.0;
    (0..USERS - 1)
        .find(|_| random.random::<f64>() < chance)
        .unwrap_or(USERS - 1)
}

#[cfg(test)]
mod tests {
    use super::{Shape, generate};
    use crate::replay::trace::{Trace, TraceJob};

    /// The makespan of strict first-come-first-served exclusive use, seconds.
    fn exclusive(trace: &Trace, gpus: usize) -> f64 {
        let mut free = vec![0.0_f64; gpus];
        let mut earliest = 0.0_f64;
        for job in &trace.jobs {
            let workload = &trace.workloads[job.workload];
            free.sort_by(f64::total_cmp);
            let start = free[job.gpus as usize - 1]
                .max(job.submit_ms as f64 / 1e3)
                .max(earliest);
            earliest = start;
            for gpu in free.iter_mut().take(job.gpus as usize) {
                *gpu = start + workload.startup_s + trace.solo_s(job);
            }
        }
        free.into_iter().fold(0.0, f64::max)
    }

    #[test]
    fn exclusive_use_takes_as_long_as_published() {
        for (shape, published) in [
            (Shape::Philly, 42_136.0),
            (Shape::Saturn, 46_644.0),
            (Shape::Venus, 44_006.0),
        ] {
            let runs = (0..40).map(|seed| exclusive(&generate(shape, 60, 3, 1.0, seed), 3));
            let mean = runs.sum::<f64>() / 40.0;
            println!("{}: {mean:.0} s, published {published} s", shape.name());
            assert!((mean / published - 1.0).abs() < 0.12, "{mean} {published}");
        }
    }

    #[test]
    fn a_trace_has_the_demand_and_span_of_its_shape_and_depends_on_the_seed() {
        let trace = generate(Shape::Saturn, 60, 3, 1.0, 5);
        assert_eq!(trace, generate(Shape::Saturn, 60, 3, 1.0, 5));
        assert_ne!(trace.jobs, generate(Shape::Saturn, 60, 3, 1.0, 6).jobs);
        let two = trace.jobs.iter().filter(|job| job.gpus == 2).count();
        assert_eq!((trace.jobs.len(), two), (60, 4));
        let submitted = |job: &TraceJob| job.submit_ms;
        assert!(trace.jobs.is_sorted_by_key(submitted));
        let span = trace.jobs.last().map_or(0, submitted);
        assert!(span.abs_diff(2_409_000) < 100, "{span}");
        for job in &trace.jobs {
            assert_eq!(trace.workloads[job.workload].gpus, job.gpus);
        }
        let open = generate(Shape::Open, 60, 8, 1.15, 1);
        assert!(open.jobs.is_sorted_by_key(submitted));
    }
}
