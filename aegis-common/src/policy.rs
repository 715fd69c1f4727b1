//! Every threshold of the scheduler core. The configuration file's `[scheduler]` table has the
//! same names; `aegisd` validates it before it becomes an event.

use serde::{Deserialize, Serialize};

/// Mebibytes in bytes.
const MIB: u64 = 1 << 20;

/// The scheduler's thresholds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Policy {
    /// Which fitting GPU is taken first.
    pub placement: Placement,
    /// Bytes promised at start to a job of unknown need (at most an eighth of the GPU). Source of
    /// the 5 GiB: AEGIS's estimator-free floor.
    pub first_lease: u64,
    /// Bytes by which a sub-lease grows at least.
    pub lease_chunk: u64,
    /// Bytes reserved per process and GPU for its context before NVML shows the real figure.
    pub context_reserve: u64,
    /// Bytes kept free on each GPU, at least.
    pub guard_bytes: u64,
    /// Share of a GPU kept free, at least, thousandths.
    pub guard_permille: u16,
    /// Margin on a learned peak, thousandths of it (at least [`Policy::lease_chunk`]).
    pub peak_margin_permille: u16,
    /// A GPU is busy when SM activity reaches this and occupancy or DRAM activity theirs;
    /// thousandths. Tiers GPM and DCGM.
    pub gate_sm_active: u16,
    /// See [`Policy::gate_sm_active`].
    pub gate_sm_occupancy: u16,
    /// See [`Policy::gate_sm_active`].
    pub gate_dram_active: u16,
    /// A GPU is busy when NVML utilisation reaches this, thousandths. Tier NVML.
    pub gate_utilisation: u16,
    /// Samples in the gate's window.
    pub gate_window: u16,
    /// A sample older than this is stale, milliseconds.
    pub stale_after_ms: u64,
    /// Observation lasts at least this long from the first launch, milliseconds.
    pub observe_min_ms: u64,
    /// Observation ends at the latest this long after the first launch, milliseconds.
    pub observe_max_ms: u64,
    /// Memory is on a plateau when its peak has not risen for this long, milliseconds.
    pub plateau_ms: u64,
    /// A job that has not launched for this long is dormant, milliseconds.
    pub dormant_after_ms: u64,
    /// Longest wait of an allocation for room, milliseconds; at most 20 000.
    pub grow_wait_ms: u32,
    /// Jobs on one GPU at most; 0: no limit.
    pub max_residents: u32,
    /// Share GPUs with processes outside AEGIS. Rootless daemons never do.
    pub share_with_foreign: bool,
    /// Evictions after which a job is no longer evictable.
    pub max_evictions: u32,
    /// A head of the queue that waits longer gets a reservation, milliseconds.
    pub reserve_after_ms: u64,
    /// How eagerly GPUs are shared.
    pub mode: Mode,
    /// Which pending job is looked at first.
    pub order: Order,
    /// Slowdowns are unknown while tasks wait for CPUs or I/O this share of the time,
    /// thousandths.
    pub host_bound: u16,
}

/// How eagerly GPUs are shared. Every mode is the pressure gate (the paper's rule with tuned
/// thresholds); they differ in where it closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// At the configured thresholds.
    Gate,
    /// At .05 less activity, and a job joins only where the work gained is worth .15 of the
    /// slowdown predicted.
    Gentle,
    /// At .07 more activity.
    Balanced,
    /// At .15 more activity.
    Throughput,
}

impl Mode {
    /// Work gained must besides be worth this much of the slowdown predicted, thousandths; `None`:
    /// nothing is predicted. Predictions only ever keep a job off: replayed cold on three GPUs,
    /// letting them overrule the gate made jobs run 1.9 times as long as alone for no better
    /// makespan than the gate's at 1.3 (README, "Replay").
    #[must_use]
    pub const fn weight(self) -> Option<u16> {
        match self {
            Self::Gate | Self::Balanced | Self::Throughput => None,
            Self::Gentle => Some(150),
        }
    }

    /// Added to [`Policy::gate_sm_active`] and [`Policy::gate_dram_active`], thousandths. Source of
    /// the figures: simulation of production-derived traces (README, "Replay").
    #[must_use]
    pub const fn gate_raise(self) -> i16 {
        match self {
            Self::Gate => 0,
            Self::Gentle => -50,
            Self::Balanced => 70,
            Self::Throughput => 150,
        }
    }

    /// No job shall be expected to become slower than this, thousandths of its speed alone.
    #[must_use]
    pub const fn worst(self) -> u32 {
        match self {
            Self::Gate | Self::Balanced | Self::Throughput => u32::MAX,
            Self::Gentle => 1_500,
        }
    }
}

impl Policy {
    /// Bytes kept free on a GPU of that size.
    #[must_use]
    pub fn guard_on(&self, memory: u64) -> u64 {
        let share = u128::from(memory) * u128::from(self.guard_permille) / 1000;
        self.guard_bytes.max(share.try_into().unwrap_or(u64::MAX))
    }

    /// Whether predicted slowdowns can keep jobs off GPUs of that tier: only where SM and DRAM
    /// activity are measured.
    #[must_use]
    pub const fn weighs(&self, tier: Tier) -> bool {
        self.mode.weight().is_some() && matches!(tier, Tier::Gpm | Tier::Dcgm)
    }
}

/// Which pending job of a priority is looked at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Users in turn, each user's jobs as submitted.
    Fifo,
    /// Users in turn, each user's shortest expected job first; unknown ones count as average.
    Shortest,
}

/// Which fitting GPU is taken first. Idle GPUs always come before occupied ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Most memory that can still be promised.
    MostAvailableMemory,
    /// Lowest SM activity.
    LeastUtilised,
    /// Least memory that can still be promised and suffices.
    BestFit,
    /// The next one after the last used.
    RoundRobin,
    /// Only idle GPUs.
    Exclusive,
}

/// Telemetry tiers, best first (contract C8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// NVML GPM counters (Hopper and newer).
    Gpm,
    /// DCGM profiling fields.
    Dcgm,
    /// NVML utilisation.
    Utilisation,
    /// Nothing usable: GPUs are not shared.
    None,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            placement: Placement::MostAvailableMemory,
            first_lease: 5 * 1024 * MIB,
            lease_chunk: 256 * MIB,
            context_reserve: 512 * MIB,
            guard_bytes: 512 * MIB,
            guard_permille: 10,
            peak_margin_permille: 50,
            gate_sm_active: 550,
            gate_sm_occupancy: 250,
            gate_dram_active: 400,
            gate_utilisation: 700,
            gate_window: 10,
            stale_after_ms: 5_000,
            observe_min_ms: 10_000,
            observe_max_ms: 120_000,
            plateau_ms: 5_000,
            dormant_after_ms: 600_000,
            grow_wait_ms: 20_000,
            max_residents: 0,
            share_with_foreign: true,
            max_evictions: 2,
            reserve_after_ms: 300_000,
            mode: Mode::Gate,
            order: Order::Fifo,
            host_bound: 400,
        }
    }
}
