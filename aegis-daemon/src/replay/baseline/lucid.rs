//! Lucid as the AEGIS artifact builds it (`select_lucid`): two jobs on a GPU at most, their sharing
//! scores add up to at most 2 and their profiled peaks to the GPU's memory less 2,048 MiB.

use aegis_common::id::GpuIndex;

use super::artifact::Choice;
use super::board::{Board, Job};

/// Jobs on a GPU.
const MAX_JOBS: usize = 2;
/// What the sharing scores on a GPU may add up to.
pub(super) const MAX_SCORE: u32 = 2;
/// Kept free, bytes.
const GUARD: u64 = 2_048 << 20;

/// The rule.
pub(super) struct Lucid;

impl Choice for Lucid {
    fn rank(&self, job: &Job, open: &[GpuIndex], board: &Board) -> Vec<GpuIndex> {
        let projected = |&index: &GpuIndex| {
            let gpu = board.gpus.get(&index)?;
            let score = board
                .profiles(gpu)
                .map(|profile| profile.score)
                .sum::<u32>();
            let peaks = board.profiles(gpu).fold(job.profile.peak, |sum, profile| {
                sum.saturating_add(profile.peak)
            });
            let score = score + job.profile.score;
            let fits = gpu.residents.len() < MAX_JOBS
                && score <= MAX_SCORE
                && peaks <= gpu.memory.saturating_sub(GUARD);
            fits.then_some((score, peaks, index))
        };
        let mut fitting: Vec<_> = open.iter().filter_map(projected).collect();
        fitting.sort_unstable();
        fitting.into_iter().map(|(_, _, index)| index).collect()
    }
}
