//! AEGIS as released (`main.py`, `placement/policies.py` of its artifact): among the occupied GPUs
//! with enough free memory that are not busy, the one with most free memory.
//!
//! Free memory is what NVML shows at the moment, less a reserve and a guard: a resident's later
//! growth is nobody's. A metric that is missing lets a job pass, as there.

use std::collections::{BTreeMap, VecDeque};

use aegis_common::event::Event;
use aegis_common::id::GpuIndex;
use aegis_common::policy::Tier;

use super::artifact::Choice;
use super::board::{Board, Gpu, Job};

/// Samples in the risk window, one a second.
const WINDOW: usize = 30;
/// Free memory a job of unknown need must find, bytes: the artifact's estimator-free floor.
const FLOOR: u64 = 5_120 << 20;
/// Added to a known peak, bytes.
const PEAK_MARGIN: u64 = 2_048 << 20;
/// Taken off what NVML calls free: at least this, and at least a hundredth of the GPU.
const RESERVE: u64 = 512 << 20;
/// Taken off besides.
const GUARD: u64 = 512 << 20;
/// Where only NVML utilisation is known: busy from this on, thousandths.
const BUSY_UTILISATION: f64 = 700.0;

/// A GPU is busy when SM activity reaches its limit and occupancy or DRAM activity theirs;
/// thousandths.
#[derive(Clone, Copy)]
pub(super) struct Thresholds {
    sm_active: f64,
    sm_occupancy: f64,
    dram_active: f64,
}

impl Thresholds {
    /// The published default.
    pub(super) const RELEASED: Self = Self {
        sm_active: 650.0,
        sm_occupancy: 350.0,
        dram_active: 500.0,
    };
    /// What the authors' own threshold sweep recommends.
    pub(super) const LOW: Self = Self {
        sm_active: 500.0,
        sm_occupancy: 200.0,
        dram_active: 400.0,
    };
}

/// How much free memory a job must find.
#[derive(Clone, Copy)]
pub(super) enum Need {
    /// The floor, whatever the job.
    Floor,
    /// Its profiled peak and a margin.
    KnownPeak,
}

/// The rule.
pub(super) struct Aegis {
    thresholds: Thresholds,
    need: Need,
    windows: BTreeMap<GpuIndex, [VecDeque<u16>; 3]>,
}

impl Aegis {
    pub(super) fn new(thresholds: Thresholds, need: Need) -> Self {
        Self {
            thresholds,
            need,
            windows: BTreeMap::new(),
        }
    }

    fn need(&self, job: &Job) -> u64 {
        match self.need {
            Need::Floor => FLOOR,
            Need::KnownPeak => job.profile.peak.saturating_add(PEAK_MARGIN),
        }
    }

    /// Decisions wait until a GPU's window was full once.
    fn busy(&self, index: GpuIndex, tier: Tier) -> bool {
        let Some([sm_active, occupancy, dram]) = self.windows.get(&index) else {
            return true;
        };
        if sm_active.len() < WINDOW {
            return true;
        }
        let reaches = |window, limit| risk(window).is_some_and(|risk| risk >= limit);
        if tier == Tier::Utilisation {
            return reaches(sm_active, BUSY_UTILISATION);
        }
        reaches(sm_active, self.thresholds.sm_active)
            && (reaches(occupancy, self.thresholds.sm_occupancy)
                || reaches(dram, self.thresholds.dram_active))
    }
}

impl Choice for Aegis {
    fn take(&mut self, event: &Event) {
        let Event::Sampled { sample } = event else {
            return;
        };
        let metrics = [sample.sm_active, sample.sm_occupancy, sample.dram_active];
        let windows = self.windows.entry(sample.gpu).or_default();
        for (window, metric) in windows.iter_mut().zip(metrics) {
            let Some(value) = metric else { continue };
            if window.len() == WINDOW {
                window.pop_front();
            }
            window.push_back(value);
        }
    }

    fn rank(&self, job: &Job, open: &[GpuIndex], board: &Board) -> Vec<GpuIndex> {
        let need = self.need(job);
        let fits = |&index: &GpuIndex| {
            let gpu = board.gpus.get(&index)?;
            let free = free(gpu)?;
            (free >= need && !self.busy(index, gpu.tier)).then_some((free, index))
        };
        let mut fitting: Vec<_> = open.iter().filter_map(fits).collect();
        fitting.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        fitting.into_iter().map(|(_, index)| index).collect()
    }
}

/// Free bytes as the artifact counts them; `None` before the first sample.
fn free(gpu: &Gpu) -> Option<u64> {
    let reserve = RESERVE.max(gpu.memory / 100);
    let free = gpu.memory.saturating_sub(gpu.used?);
    Some(free.saturating_sub(reserve).saturating_sub(GUARD))
}

/// A quarter each of mean, median, 95th percentile and exponentially weighted mean with
/// α = 2 / (window + 1). `None` without values.
fn risk(window: &VecDeque<u16>) -> Option<f64> {
    let mut sorted: Vec<u16> = window.iter().copied().collect();
    sorted.sort_unstable();
    let count = sorted.len();
    let at = |index: usize| sorted.get(index).map(|&value| f64::from(value));
    let mean = sorted.iter().map(|&value| f64::from(value)).sum::<f64>() / count as f64;
    let median = (at(count.checked_sub(1)? / 2)? + at(count / 2)?) / 2.0;
    let p95 = at((count * 95).div_ceil(100).checked_sub(1)?)?;
    let alpha = 2.0 / (WINDOW as f64 + 1.0);
    let mut values = window.iter().map(|&value| f64::from(value));
    let start = values.next()?;
    let ewma = values.fold(start, |ewma, value| ewma + alpha * (value - ewma));
    Some((mean + median + p95 + ewma) / 4.0)
}
