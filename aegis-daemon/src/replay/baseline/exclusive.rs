//! A GPU for a job, first come, first served: what every ratio is relative to.

use aegis_common::id::GpuIndex;

use super::artifact::Choice;
use super::board::{Board, Job};

/// Only idle GPUs, which the loop hands out itself.
pub(super) struct Exclusive;

impl Choice for Exclusive {
    fn rank(&self, _job: &Job, _open: &[GpuIndex], _board: &Board) -> Vec<GpuIndex> {
        Vec::new()
    }
}
