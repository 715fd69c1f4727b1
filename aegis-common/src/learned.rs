//! What earlier runs of a command taught, and what an attempt teaches.
//!
//! The store keeps one record per (user, normalised command, GPU model). A submission carries the
//! record's figures into the core as part of its event, so that a replayed journal decides alike.

use serde::{Deserialize, Serialize};

use crate::id::Moment;

/// How busy a GPU was with one job alone, thousandths of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// SM activity (or NVML utilisation, where the tier has nothing better).
    pub sm_active: u16,
    /// SM occupancy; `None` where the tier has none.
    pub sm_occupancy: Option<u16>,
    /// Device memory activity; `None` where the tier has none.
    pub dram_active: Option<u16>,
}

/// How fast a launch sequence goes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoloRate {
    /// Which launch sequence.
    pub fingerprint: u64,
    /// Periods per 1,000,000 seconds with the GPU alone.
    pub rate_uhz: u64,
}

/// Quantiles of a duration, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantiles {
    /// A tenth took less.
    pub p10: u64,
    /// Half took less.
    pub p50: u64,
    /// Nine tenths took less.
    pub p90: u64,
}

/// What is known of a command before it runs. Every figure is `None` where nothing was learned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Learned {
    /// Attempts the figures rest on.
    pub runs: u32,
    /// The figures are of this very command; false: of the most similar one known.
    pub exact: bool,
    /// Highest bytes held on any one GPU by ledgers.
    pub peak: Option<u64>,
    /// Highest bytes of contexts and modules on any one GPU.
    pub overhead: Option<u64>,
    /// How busy it keeps a GPU alone.
    pub profile: Option<Profile>,
    /// How fast its launch sequences go alone, at most eight.
    pub solo_rates: Vec<SoloRate>,
    /// How long it needs alone: running time of successful attempts, each divided by its mean
    /// slowdown where that is known.
    pub work: Option<Quantiles>,
    /// The slowdown of each of these attempts was known; false: some of `work` may be running time
    /// beside others.
    pub work_measured: bool,
}

/// What an attempt taught, handed to the store when it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// NVML's product name of its GPUs.
    pub gpu_model: String,
    /// It ended with exit code 0.
    pub completed: bool,
    /// It ended out of memory.
    pub out_of_memory: bool,
    /// Highest bytes held on any one GPU by ledgers; `None`: it held none, or preallocated.
    pub peak: Option<u64>,
    /// Highest bytes of contexts and modules on any one GPU; `None`: not measured.
    pub overhead: Option<u64>,
    /// How busy it kept a GPU alone; `None`: it was never alone for long enough.
    pub profile: Option<Profile>,
    /// How fast its launch sequences went alone, at most eight.
    pub solo_rates: Vec<SoloRate>,
    /// Running time, milliseconds.
    pub ran_ms: u64,
    /// Running time divided by its slowdown, milliseconds; `None`: the slowdown is not known for
    /// most of it.
    pub work_ms: Option<u64>,
    /// When it ended.
    pub ended: Moment,
}
