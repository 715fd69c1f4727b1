//! Lucid by its authors' simulator (`S-Lab-System-Group/Lucid`, `lucid.py`): the queue is ordered by
//! predicted duration × GPUs and nobody blocks it; a job joins the first running job that is
//! alone on its GPUs, has the same number of them, whose score and memory go with its own, and of
//! whose predicted service its own is at most twice; only then is an idle GPU taken.
//!
//! Left out: the separate profiling cluster (a server has none) and the switch that turns sharing
//! off in quiet hours (used by its authors for one trace only).

use aegis_common::action::Action;
use aegis_common::id::{GpuIndex, JobId, Moment};

use super::Rule;
use super::board::{Board, Job, first};
use super::lucid::MAX_SCORE;

/// Jobs with more GPUs never share.
const MAX_SHARED_GPUS: usize = 8;

/// The rule.
pub(super) struct LucidPaper;

impl Rule for LucidPaper {
    fn pass(&mut self, _at: Moment, board: &mut Board, out: &mut Vec<Action>) -> Option<Moment> {
        // A job that ran out of memory beside another is tried again alone, before all.
        for id in Vec::from_iter(board.recovering.iter().copied()) {
            start_idle(id, board, out);
        }
        let waiting = board.queue.iter();
        let mut waiting: Vec<_> = waiting
            .filter_map(|&id| Some((service(board.job(id)?), id)))
            .collect();
        waiting.sort_unstable();
        for (_, id) in waiting {
            match board.job(id).and_then(|job| partner(job, board)) {
                Some(gpus) => board.start(id, gpus, out),
                None => start_idle(id, board, out),
            }
        }
        None
    }
}

fn start_idle(id: JobId, board: &mut Board, out: &mut Vec<Action>) {
    let gpus = board.job(id).and_then(|job| first(board.idle(), job.gpus));
    if let Some(gpus) = gpus {
        board.start(id, gpus, out);
    }
}

/// Predicted GPU-seconds.
fn service(job: &Job) -> u64 {
    job.profile.predicted_s.saturating_mul(job.gpus as u64)
}

/// The GPUs of the first running job it may join.
fn partner(job: &Job, board: &Board) -> Option<Vec<GpuIndex>> {
    let joins = |other: &Job| {
        let peaks = job.profile.peak.saturating_add(other.profile.peak);
        let mut gpus = other.on.iter().filter_map(|gpu| board.gpus.get(gpu));
        job.gpus == other.gpus
            && job.gpus <= MAX_SHARED_GPUS
            && job.profile.score + other.profile.score <= MAX_SCORE
            && service(job) <= service(other).saturating_mul(2)
            && gpus.all(|gpu| gpu.residents.len() == 1 && peaks < gpu.memory)
    };
    let mut running = board.running();
    running.find_map(|(_, other)| joins(other).then(|| other.on.clone()))
}
