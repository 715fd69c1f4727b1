//! What an offline profiler would tell the published policies about a trace's jobs.

use aegis_common::id::JobId;

use super::baseline::{Profile, Profiles, lucid_score};
use super::number::whole;
use super::random;
use super::trace::Trace;
use super::truth::log_slowdown;
use super::workload::Workload;

/// Standard deviation of ln (predicted / true duration). Lucid's estimator explains about half
/// of the variance of durations on its own traces; half an e-fold is kinder.
const DURATION_NOISE: f64 = 0.5;
/// The artifact's classifier is trained on pair speeds that count the time after the partner's
/// exit as shared, which makes partners look better than they are (project notes on its pair
/// file). Share of ln slowdown that is left; fitted to Lucid's published makespan.
pub const COUNTED: f64 = 0.8;

/// Profiles of all jobs. `context` is what NVML shows besides what a program allocates, bytes.
#[must_use]
pub fn profiles(trace: &Trace, context: u64, seed: u64) -> Profiles {
    let scores: Vec<u32> = trace
        .workloads
        .iter()
        .map(|one| score(one, trace))
        .collect();
    let jobs = (1..).zip(&trace.jobs).filter_map(|(id, job)| {
        let workload = trace.workloads.get(job.workload)?;
        let noise = (random::normal(seed, id) * DURATION_NOISE).exp();
        let profile = Profile {
            utilisation: whole(workload.utilisation * 1_000.0) as u32,
            score: scores.get(job.workload).copied()?,
            peak: workload.peaks.iter().copied().max()? + context,
            predicted_s: whole(trace.solo_s(job) * noise),
        };
        Some((JobId(id), profile))
    });
    jobs.collect()
}

/// Lucid's sharing score: its classifier is trained on the speeds of all pairs, which the
/// catalogue's additive fit stands for.
fn score(mine: &Workload, trace: &Trace) -> u32 {
    let speeds = trace
        .workloads
        .iter()
        .map(|other| (-log_slowdown(mine, other, 0.0) * COUNTED).exp());
    lucid_score(speeds.sum::<f64>() / trace.workloads.len() as f64)
}
