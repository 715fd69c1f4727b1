//! The machine that a trace is replayed on.

use aegis_common::job::OnSuspend;
use aegis_common::policy::{Policy, Tier};

use crate::replay::truth::Interference;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// CPU cores per GPU: 64 beside three GPUs, as in a DGX Station A100.
const CORES_PER_GPU: f64 = 64.0 / 3.0;

/// Fitted, with [`TELEMETRY`], to what the AEGIS artifact measured end to end on 3 A100: makespan
/// and execution time of Horus, Lucid and AEGIS relative to exclusive use (`cargo xtask evaluate`
/// shows how well).
const INTERFERENCE: f64 = 0.6;
/// Share of the true activity that telemetry shows; see [`INTERFERENCE`].
const TELEMETRY: f64 = 0.8;

/// The machine and its truth. Times in milliseconds, memory in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineConfig {
    /// How many GPUs, all alike.
    pub gpus: u32,
    /// Memory of each, as NVML reports it.
    pub gpu_memory: u64,
    /// What the driver keeps of it.
    pub driver_reserve: u64,
    /// What a process's context and modules take on each of its GPUs. No ledger shows it.
    pub context: u64,
    /// The telemetry there is.
    pub tier: Tier,
    /// The thresholds that [`aegis_common::event::Event::Configured`] tells. Only the core heeds
    /// them.
    pub policy: Policy,
    /// CPU cores for the loaders of all jobs.
    pub cpu_cores: f64,
    /// The truth about pairs.
    pub interference: Interference,
    /// Scales what a neighbour adds to a job's time.
    pub interference_factor: f64,
    /// Standard deviation of ln slowdown per ordered pair: the residual of the fit.
    pub pair_noise: f64,
    /// What each further job on a GPU adds to everybody's time besides, as a share of the time
    /// alone: contention for CPUs, loaders, PCIe.
    pub co_resident_cost: f64,
    /// SM activity that a GPU can deliver in all.
    pub busy_cap: f64,
    /// Telemetry shows this share of the true activity.
    pub telemetry_factor: f64,
    /// Relative standard deviation of a sample.
    pub telemetry_noise: f64,
    /// Relative standard deviation of a measured rate.
    pub progress_noise: f64,
    /// From the decision to the start of the command.
    pub launch_ms: u64,
    /// From SIGTERM until an attempt is gone.
    pub stop_ms: u64,
    /// From an error until an attempt is gone.
    pub exit_ms: u64,
    /// How long a suspended job saves its state, holding its GPUs.
    pub save_ms: u64,
    /// How much longer the start of a resumed job takes.
    pub restore_ms: u64,
    /// Jobs may be stopped and started again.
    pub requeue: bool,
    /// Attempts after the first that a job may use up by running out of memory.
    pub retries: u32,
    /// How jobs save their state, if they can.
    pub on_suspend: Option<OnSuspend>,
    /// Jobs declare their true peak, as after a perfect measurement.
    pub declare_peaks: bool,
    /// Keep every event and what the scheduler answered.
    pub keep_journal: bool,
    /// Keep memory and activity of each GPU over time.
    pub keep_series: bool,
}

impl MachineConfig {
    /// A machine with that many GPUs of that many GiB, and everything else as measured or
    /// published.
    #[must_use]
    pub fn new(gpus: u32, gib: u64) -> Self {
        Self {
            gpus,
            gpu_memory: gib * GIB,
            driver_reserve: 500 * MIB,
            context: 450 * MIB,
            tier: Tier::Gpm,
            policy: Policy::default(),
            cpu_cores: CORES_PER_GPU * f64::from(gpus),
            interference: Interference::Additive,
            interference_factor: INTERFERENCE,
            pair_noise: 0.065,
            co_resident_cost: 0.0,
            busy_cap: 0.97,
            telemetry_factor: TELEMETRY,
            telemetry_noise: 0.03,
            progress_noise: 0.01,
            launch_ms: 100,
            stop_ms: 2_000,
            exit_ms: 1_000,
            save_ms: 10_000,
            restore_ms: 5_000,
            requeue: true,
            retries: 3,
            on_suspend: None,
            declare_peaks: false,
            keep_journal: false,
            keep_series: false,
        }
    }

    /// The policy that the scheduler is told. Replay samples a steady GPU once in
    /// `SLOW_SAMPLE_MS` instead of twice a second, because nothing changes between two
    /// changes: a sample must stay fresh for that long.
    #[must_use]
    pub fn told_policy(&self) -> Policy {
        let slowest = 3 * super::SLOW_SAMPLE_MS;
        Policy {
            stale_after_ms: self.policy.stale_after_ms.max(slowest),
            ..self.policy.clone()
        }
    }
}
