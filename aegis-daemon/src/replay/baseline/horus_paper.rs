//! Horus by its author's simulator (`matthewygf/GPUSchedule`): three jobs on a GPU at most, a memory
//! estimate that must fit, the cheapest GPU, and the first placeable of the five jobs ahead.
//!
//! The queue is ordered by utilisation, lowest first. The cost of a GPU is 1.3 × (memory in use
//! with the job as a share of the GPU) + U / 100 + running jobs, where U is 1.6 times the
//! percentage points above 100 % utilisation, or the points below. (As written there the memory
//! term divides the job's share only, by operator precedence; here it is what was meant.) The memory
//! estimate is the profiled peak, better than Horus's own formula.

use aegis_common::action::Action;
use aegis_common::id::{GpuIndex, JobId, Moment};

use super::Rule;
use super::board::{Board, Job, first};

/// Jobs on a GPU.
const MAX_JOBS: usize = 3;
/// Memory that must stay free, bytes.
const MARGIN: u64 = 500 << 20;
/// Jobs looked at.
const LOOK_AHEAD: usize = 5;

/// The rule.
pub(super) struct HorusPaper;

impl Rule for HorusPaper {
    fn pass(&mut self, _at: Moment, board: &mut Board, out: &mut Vec<Action>) -> Option<Moment> {
        while let Some((job, gpus)) = next(board) {
            board.start(job, gpus, out);
        }
        None
    }
}

fn next(board: &Board) -> Option<(JobId, Vec<GpuIndex>)> {
    // A job that ran out of memory beside others is tried again alone.
    for &id in &board.recovering {
        if let Some(gpus) = first(board.idle(), board.job(id)?.gpus) {
            return Some((id, gpus));
        }
    }
    let mut ahead: Vec<_> = board
        .queue
        .iter()
        .filter_map(|&id| Some((board.job(id)?.profile.utilisation, id)))
        .collect();
    ahead.sort_unstable();
    ahead.into_iter().take(LOOK_AHEAD).find_map(|(_, id)| {
        let job = board.job(id)?;
        Some((id, first(cheapest(job, board), job.gpus)?))
    })
}

/// The GPUs where the job fits, cheapest first.
fn cheapest(job: &Job, board: &Board) -> Vec<GpuIndex> {
    let mut fitting: Vec<_> = board
        .gpus
        .iter()
        .filter_map(|(&index, gpu)| {
            let idle = gpu.residents.is_empty();
            let peaks = board.profiles(gpu).fold(job.profile.peak, |sum, profile| {
                sum.saturating_add(profile.peak)
            });
            let resident: u32 = board.profiles(gpu).map(|profile| profile.utilisation).sum();
            let fits = gpu.residents.len() < MAX_JOBS && peaks.saturating_add(MARGIN) < gpu.memory;
            let cost = cost(
                peaks.min(gpu.memory) as f64 / gpu.memory as f64,
                resident.min(1_000),
                job.profile.utilisation,
                gpu.residents.len(),
            );
            (idle || fits).then_some((cost, index))
        })
        .collect();
    fitting.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    fitting.into_iter().map(|(_, index)| index).collect()
}

/// `memory` is a share, utilisations are thousandths.
fn cost(memory: f64, resident: u32, newcomer: u32, running: usize) -> f64 {
    let excess = (f64::from(resident) + f64::from(newcomer) - 1_000.0) / 10.0;
    let utilisation = if excess > 0.0 { 1.6 * excess } else { -excess };
    1.3 * memory + utilisation / 100.0 + running as f64
}
