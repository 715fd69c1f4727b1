//! Horus as the AEGIS artifact builds it (`select_horus`): profiled mean utilisations may add up to
//! 100 % on a GPU; the least loaded one is taken. Memory is ignored.

use aegis_common::id::GpuIndex;

use super::artifact::Choice;
use super::board::{Board, Job};

/// What the mean utilisations on a GPU may add up to, thousandths.
const BUDGET: u32 = 1_000;

/// The rule.
pub(super) struct Horus;

impl Choice for Horus {
    fn rank(&self, job: &Job, open: &[GpuIndex], board: &Board) -> Vec<GpuIndex> {
        let projected = |index: &GpuIndex| {
            let gpu = board.gpus.get(index)?;
            let resident: u32 = board.profiles(gpu).map(|profile| profile.utilisation).sum();
            Some((resident + job.profile.utilisation, *index))
        };
        let mut fitting: Vec<_> = open.iter().filter_map(projected).collect();
        fitting.retain(|&(utilisation, _)| utilisation <= BUDGET);
        fitting.sort_unstable();
        fitting.into_iter().map(|(_, index)| index).collect()
    }
}
