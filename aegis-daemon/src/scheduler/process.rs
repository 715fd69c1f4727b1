//! One process of a job's running attempt.

use aegis_common::id::{GpuIndex, ProcessKey};
use serde::{Deserialize, Serialize};

use super::progress::Pace;
use super::recent::RecentMin;

/// A process, as far as events told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Process {
    /// Which.
    pub(super) key: ProcessKey,
    /// It introduced itself: its allocations can be bounded.
    pub(super) instrumented: bool,
    /// It has launched.
    pub(super) launched: bool,
    /// Launches at its last usage report.
    pub(super) launches: u64,
    /// How fast it went when last measured.
    #[serde(default)]
    pub(super) pace: Option<Pace>,
    /// One per GPU of the attempt.
    pub(super) lines: Vec<Line>,
}

/// A process's account on one GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Line {
    /// Where.
    pub(super) gpu: GpuIndex,
    /// The limit in its lease page, bytes.
    pub(super) sublease: u64,
    /// Bytes it holds by its ledger.
    pub(super) used: u64,
    /// NVML − ledger: contexts and modules.
    pub(super) overhead: RecentMin,
    /// The last refusal it has not recovered from.
    pub(super) refusal: Option<u64>,
    /// It asked for memory or reported usage here: it has (or will have) a context here.
    pub(super) touched: bool,
    /// The flag in its lease page.
    pub(super) oldest: bool,
}

impl Process {
    /// A process that has done nothing yet on these GPUs.
    pub(super) fn new(key: ProcessKey, instrumented: bool, gpus: &[GpuIndex]) -> Self {
        let line = |&gpu: &GpuIndex| Line {
            gpu,
            sublease: 0,
            used: 0,
            overhead: RecentMin::default(),
            refusal: None,
            touched: false,
            oldest: false,
        };
        Self {
            key,
            instrumented,
            launched: false,
            launches: 0,
            pace: None,
            lines: gpus.iter().map(line).collect(),
        }
    }

    /// Its account on a GPU of its job.
    pub(super) fn line(&self, gpu: GpuIndex) -> Option<&Line> {
        self.lines.iter().find(|line| line.gpu == gpu)
    }

    /// Its account on a GPU of its job.
    pub(super) fn line_mut(&mut self, gpu: GpuIndex) -> Option<&mut Line> {
        self.lines.iter_mut().find(|line| line.gpu == gpu)
    }
}

impl Line {
    /// Bytes it holds or may take without asking. Bytes in flight are either within the sub-lease
    /// or belong to a request that is not granted.
    pub(super) fn charge(&self) -> u64 {
        self.sublease.max(self.used)
    }
}
