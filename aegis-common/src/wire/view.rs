//! What users see of jobs, GPUs and processes. These are also the `--json` documents.

use serde::{Deserialize, Serialize};

use crate::bytes::ByteString;
use crate::event::{ForeignProcess, Peer};
use crate::id::{GpuIndex, JobId, Moment, ProcessKey};
use crate::job::{Exit, Holding, JobState, Resources, Slowdown};
use crate::learned::Learned;
use crate::policy::Tier;
use crate::reason::{Blocker, RetryReason, StopReason};

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    /// Its number.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// The owner's uid.
    pub uid: u32,
    /// The owner's user name, if known.
    pub user: Option<String>,
    /// The command line, byte-exact.
    pub argv: Vec<ByteString>,
    /// Where it runs.
    pub cwd: ByteString,
    /// What it asked for.
    pub resources: Resources,
    /// Where it is in its life.
    pub state: JobState,
    /// When it was accepted.
    pub submitted: Moment,
    /// When its first attempt started: its seniority.
    pub first_started: Option<Moment>,
    /// When it was over.
    pub ended: Option<Moment>,
    /// Attempts so far, oldest first.
    pub attempts: Vec<Attempt>,
    /// What the running attempt holds, per GPU.
    pub holdings: Vec<Holding>,
    /// Bytes the next attempt will be promised on each GPU, if an attempt failed.
    pub floor: Option<u64>,
    /// The next attempt has its GPUs to itself.
    pub next_exclusive: bool,
    /// Times it was stopped for others.
    pub evictions: u32,
    /// Refused allocations in words, the last ones, newest last.
    #[serde(default)]
    pub refusals: Vec<String>,
    /// Place in the queue from 1 while pending.
    pub position: Option<u32>,
    /// The first obstacle in words while pending.
    pub waits_for: Option<String>,
    /// What earlier runs of its command had taught when it was submitted.
    #[serde(default)]
    pub learned: Option<Learned>,
    /// Its GPUs on which nothing happens.
    #[serde(default)]
    pub idle: Vec<IdleGpu>,
    /// How much slower it runs than alone; `None`: it does not run.
    #[serde(default)]
    pub slowdown: Option<Slowdown>,
}

/// A GPU that a running job keeps from others without using it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleGpu {
    /// The GPU.
    pub gpu: GpuIndex,
    /// Since when.
    pub since: Moment,
    /// The job holds memory there and launches nothing anywhere; false: it holds no memory there.
    pub dormant: bool,
}

/// One attempt of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// Where, in rank order.
    pub gpus: Vec<GpuIndex>,
    /// When its command was started.
    pub started: Option<Moment>,
    /// When its process tree was gone.
    pub ended: Option<Moment>,
    /// How its main process ended.
    pub exit: Option<Exit>,
    /// Why the daemon stopped it.
    pub stopped: Option<StopReason>,
    /// Why another attempt followed.
    pub retried: Option<RetryReason>,
    /// Highest bytes held on any one of its GPUs, by its ledgers.
    pub peak: u64,
    /// Its output, standard output and error together.
    pub log: ByteString,
}

/// The queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueView {
    /// Live jobs: running first, then pending in queue order; then finished ones, newest first.
    pub jobs: Vec<JobView>,
    /// Pending jobs in all.
    pub pending: u32,
    /// Running jobs in all.
    pub running: u32,
}

/// Why a job is where it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The job.
    pub job: JobId,
    /// Its state.
    pub state: JobState,
    /// Every obstacle, in the order of [`crate::reason::BLOCKER_CODES`]; empty unless pending.
    pub blockers: Vec<Explained>,
    /// What happened so far: retries, evictions, refusals, in words.
    pub history: Vec<String>,
}

/// An obstacle with its words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// The obstacle with its numbers.
    #[serde(flatten)]
    pub blocker: Blocker,
    /// It in words.
    pub text: String,
    /// What clears it, in words.
    pub clears: String,
}

impl From<Blocker> for Explained {
    fn from(blocker: Blocker) -> Self {
        Self {
            text: blocker.to_string(),
            clears: blocker.clears(),
            blocker,
        }
    }
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpuView {
    /// NVML's index.
    pub index: GpuIndex,
    /// NVML's UUID.
    pub uuid: String,
    /// Product name.
    pub name: String,
    /// Total bytes.
    pub memory: u64,
    /// Bytes in use by everybody, by NVML.
    pub used: Option<u64>,
    /// Bytes promised to jobs (leases and overhead).
    pub promised: u64,
    /// Bytes used outside AEGIS (foreign processes and driver).
    pub unmanaged: u64,
    /// Bytes kept free.
    pub guard: u64,
    /// Bytes that can still be promised.
    pub available: u64,
    /// Telemetry tier.
    pub tier: Tier,
    /// The gate's figure of SM activity, thousandths; `None`: no valid window.
    pub sm_active: Option<u16>,
    /// The gate's figure of SM occupancy, thousandths.
    pub sm_occupancy: Option<u16>,
    /// The gate's figure of DRAM activity, thousandths.
    pub dram_active: Option<u16>,
    /// Milliseconds since the last valid sample.
    pub sample_age_ms: Option<u64>,
    /// Jobs there, by seniority.
    pub residents: Vec<JobId>,
    /// Processes nobody submitted.
    pub foreign: Vec<ForeignProcess>,
    /// It does not answer.
    pub lost: bool,
    /// How far the others are, those that NVML told of.
    #[serde(default)]
    pub peers: Vec<Peer>,
}

/// Ledgers as `aegis inspect` shows them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inspection {
    /// False if this was read without a daemon.
    pub daemon: bool,
    /// One entry per process, by job and pid.
    pub processes: Vec<LedgerView>,
}

/// One process's ledger and lease page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerView {
    /// The job; `None` if unknown.
    pub job: Option<JobId>,
    /// The process.
    pub process: ProcessKey,
    /// Its command name.
    pub command: Option<String>,
    /// It still runs.
    pub alive: bool,
    /// Kernel launches.
    pub kernels: u64,
    /// Graph launches.
    pub graphs: u64,
    /// Copies.
    pub copies: u64,
    /// Memsets.
    pub memsets: u64,
    /// Milliseconds since launches last increased, as sampled; `None`: never seen to.
    pub idle_ms: Option<u64>,
    /// The process has launched.
    pub launched: bool,
    /// Names looked up that the hook table does not know.
    pub unknown_lookups: u64,
    /// Pass-throughs by reason, non-zero ones only.
    pub bypasses: Vec<(String, u64)>,
    /// Stream captures open now.
    pub captures_open: u32,
    /// Per GPU.
    pub gpus: Vec<LedgerGpu>,
    /// How fast it repeats its launch sequence, as last measured; `None`: not known.
    #[serde(default)]
    pub pace: Option<PaceView>,
    /// What is wrong with the ledger, if it contradicts itself or NVML.
    pub warning: Option<String>,
}

/// How fast a process repeated its launch sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaceView {
    /// Which sequence.
    pub fingerprint: u64,
    /// Launches in it.
    pub period: u64,
    /// Repetitions per 1,000,000 seconds.
    pub rate_uhz: u64,
    /// How long was measured, milliseconds.
    pub window_ms: u32,
    /// How long ago the measurement ended, milliseconds.
    pub age_ms: u64,
}

/// One process's account on one GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerGpu {
    /// The GPU's index; `None` if its UUID is unknown here.
    pub gpu: Option<GpuIndex>,
    /// The GPU's UUID.
    pub uuid: String,
    /// Bytes by kind, kinds in use only.
    pub kinds: Vec<KindBytes>,
    /// Their sum.
    pub used: u64,
    /// Highest sum.
    pub peak: u64,
    /// Bytes in flight.
    pub inflight: u64,
    /// The process's limit; `None`: none.
    pub limit: Option<u64>,
    /// Bytes NVML attributes to the process there.
    pub nvml: Option<u64>,
    /// Successful allocations.
    pub allocs: u64,
    /// Blocks given back.
    pub frees: u64,
    /// Refusals by the shim.
    pub denials: u64,
    /// Refusals by the driver.
    pub driver_ooms: u64,
    /// Runs of refusals.
    pub episodes: u64,
}

/// Bytes of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindBytes {
    /// The kind's name.
    pub kind: String,
    /// Bytes.
    pub bytes: u64,
}

/// One process on a GPU by NVML.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProcess {
    /// Its pid.
    pub pid: u32,
    /// Its job, if it belongs to one.
    pub job: Option<JobId>,
    /// Bytes.
    pub bytes: u64,
}

/// The daemon about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DaemonView {
    /// Its version.
    pub version: String,
    /// Its pid.
    pub pid: u32,
    /// Root mode serves many users, rootless mode one.
    pub rootless: bool,
    /// Its checks.
    pub checks: Vec<Check>,
}

/// One check of `aegis doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// What was found.
    pub state: CheckState,
    /// In words.
    pub detail: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// Works.
    Ok,
    /// Works with less.
    Degraded,
    /// Does not work.
    Failed,
}
