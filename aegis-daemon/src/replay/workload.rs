//! What a training program really does: the truth no scheduler sees.

/// A training program. Shares are of 1; times in seconds of running alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// For people and for the importers; never reaches a scheduler.
    pub name: String,
    /// GPUs it was measured with.
    pub gpus: u32,
    /// How many of these, the last ones, it reserves but never uses: a context and no launch.
    pub unused_gpus: u32,
    /// Highest bytes it holds on each of its GPUs, contexts excluded; one entry per GPU.
    pub peaks: Vec<u64>,
    /// NVML GPU utilisation alone.
    pub utilisation: f64,
    /// SM activity alone, mean over its GPUs.
    pub sm_active: f64,
    /// SM occupancy alone.
    pub sm_occupancy: f64,
    /// Device memory activity alone.
    pub dram_active: f64,
    /// From the first launch to the end, alone.
    pub solo_s: f64,
    /// From the start of the command to the first launch.
    pub startup_s: f64,
    /// How much it suffers beside others: ln slowdown = .190 + this + the other's pressure.
    pub log_sensitivity: f64,
    /// How much others suffer beside it.
    pub log_pressure: f64,
    /// How its memory comes.
    pub memory: Memory,
    /// CPU cores its loaders keep busy alone.
    pub cpu_cores: f64,
    /// Seconds of one period of its launch sequence alone.
    pub period_s: f64,
    /// Launches in a period.
    pub launches: u32,
}

/// How a program's memory comes, as shares of its peak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// Held when the first launch happens (the model).
    pub at_start: f64,
    /// Held after the first steps (activations, then optimizer state).
    pub after_first_steps: f64,
    /// Seconds after the first launch at which that is reached.
    pub first_steps_s: f64,
    /// When the peak itself is first reached, as a share of the work: an evaluation, a last batch.
    pub peak_at: f64,
}

impl Workload {
    /// Highest bytes it holds on any one of its GPUs.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peaks.iter().copied().max().unwrap_or(0)
    }

    /// Highest bytes of a rank; of one beyond those measured, the last one's.
    #[must_use]
    pub fn peak_of(&self, rank: usize) -> u64 {
        let peak = self.peaks.get(rank).or(self.peaks.last());
        peak.copied().unwrap_or(0)
    }
}
