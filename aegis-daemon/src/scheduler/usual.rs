//! What jobs usually are like: stands in for what is not known of one.

use aegis_common::learned::Profile;
use serde::{Deserialize, Serialize};

/// How much one more job moves a mean: the last sixteen or so count.
const WEIGHT: u64 = 16;

/// Means over the jobs of the recent past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Usual {
    /// Thousandths.
    pub(super) sm_active: u64,
    /// Thousandths.
    pub(super) dram_active: u64,
    /// Highest bytes held on a GPU.
    pub(super) peak: u64,
    /// Running time alone, milliseconds.
    pub(super) work_ms: u64,
}

impl Default for Usual {
    /// The means of the 52 workloads the AEGIS artifact profiled on an A100 (their published solo
    /// figures): SM activity .42, DRAM activity .19, peak 7,410 MiB, 32 minutes.
    fn default() -> Self {
        Self {
            sm_active: 420,
            dram_active: 190,
            peak: 7_410 << 20,
            work_ms: 32 * 60 * 1000,
        }
    }
}

impl Usual {
    /// Takes what an attempt showed; what it did not show changes nothing.
    pub(super) fn note(
        &mut self,
        profile: Option<Profile>,
        peak: Option<u64>,
        work_ms: Option<u64>,
    ) {
        if let Some(profile) = profile {
            mix(&mut self.sm_active, u64::from(profile.sm_active));
            if let Some(dram_active) = profile.dram_active {
                mix(&mut self.dram_active, u64::from(dram_active));
            }
        }
        if let Some(peak) = peak {
            mix(&mut self.peak, peak);
        }
        if let Some(work_ms) = work_ms {
            mix(&mut self.work_ms, work_ms);
        }
    }
}

fn mix(mean: &mut u64, value: u64) {
    *mean = (mean.saturating_mul(WEIGHT - 1).saturating_add(value)) / WEIGHT;
}
