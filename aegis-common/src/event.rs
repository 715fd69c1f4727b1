//! The scheduler core's only input. Whatever is not in an [`Event`] cannot influence a decision.
//!
//! Events are journalled in the order the core sees them. *Durable* events are on disk before the
//! core's actions are carried out. The others (process life, samples, grants) are written along
//! without waiting for the disk: after a crash they are rebuilt from ledgers and NVML.

use serde::{Deserialize, Serialize};

use crate::id::{GpuIndex, JobId, Moment, ProcessKey};
use crate::job::{Exit, Resources};
use crate::learned::Learned;
use crate::policy::{Policy, Tier};

/// An event and when it happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// When; never before the event ahead of it.
    pub at: Moment,
    /// What.
    pub event: Event,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Thresholds took effect. Durable.
    Configured {
        /// The whole policy.
        policy: Policy,
    },
    /// The machine's GPUs were (re)counted. Durable. A GPU missing here is lost.
    MachineFound {
        /// All GPUs present, by ascending index.
        gpus: Vec<Gpu>,
    },
    /// A job was accepted. Durable.
    Submitted {
        /// Its number; greater than all before.
        job: JobId,
        /// The owner.
        uid: u32,
        /// What it asks for.
        resources: Resources,
        /// What earlier runs of its command taught; empty for an unknown command.
        #[serde(default)]
        learned: Learned,
    },
    /// The owner or an administrator wants the job gone. Durable.
    CancelRequested {
        /// The job.
        job: JobId,
        /// Who asked.
        by: u32,
    },
    /// The attempt's start record exists: its command runs or ran. Durable. After a crash this may
    /// name an attempt whose [`crate::action::Action::Start`] the core does not remember; `gpus`
    /// then says what it holds.
    Started {
        /// The job.
        job: JobId,
        /// The attempt, from 1.
        attempt: u32,
        /// The GPUs it was given, in rank order.
        gpus: Vec<GpuIndex>,
    },
    /// The command could not be started (missing program, lost directory, …). Durable.
    StartFailed {
        /// The job.
        job: JobId,
        /// The attempt.
        attempt: u32,
        /// What failed, with the path or field.
        error: String,
    },
    /// The attempt's whole process tree is gone. Durable. All its [`Event::ProcessGone`] came
    /// before.
    Ended {
        /// The job.
        job: JobId,
        /// The attempt.
        attempt: u32,
        /// How its main process ended.
        exit: Exit,
    },
    /// The journal can (again) or cannot be written.
    JournalState {
        /// The error while it cannot.
        error: Option<String>,
    },
    /// A process of a job's running attempt loaded the shim and introduced itself.
    ProcessAttached {
        /// The job.
        job: JobId,
        /// The process.
        process: ProcessKey,
    },
    /// A process of a job holds GPU memory (by NVML) without having introduced itself.
    ProcessUninstrumented {
        /// The job.
        job: JobId,
        /// The process.
        process: ProcessKey,
    },
    /// A process ended. What it held is free.
    ProcessGone {
        /// The job.
        job: JobId,
        /// The process.
        process: ProcessKey,
    },
    /// A process launched its first kernel.
    FirstLaunch {
        /// The job.
        job: JobId,
        /// The process.
        process: ProcessKey,
    },
    /// A process's ledger as read now. Implausible values were already clamped.
    Usage {
        /// The job.
        job: JobId,
        /// The process.
        process: ProcessKey,
        /// Launches so far, all kinds and threads.
        launches: u64,
        /// Per GPU in use.
        gpus: Vec<ProcessGpu>,
    },
    /// How fast a process went since its last report: periods of its launch sequence (contract
    /// C6). Not sent while no period is known.
    Progress {
        /// The job.
        job: JobId,
        /// The process.
        process: ProcessKey,
        /// Which launch sequence; equal only for the same sequence of the same program.
        fingerprint: u64,
        /// Periods per 1,000,000 seconds.
        rate_uhz: u64,
        /// How long was measured, milliseconds.
        window_ms: u32,
    },
    /// How busy the host is.
    HostSampled {
        /// Share of time in which some task waited for a CPU, thousandths (pressure stall
        /// information, `some`); `None`: unknown.
        cpu_waits: Option<u16>,
        /// The same for I/O.
        io_waits: Option<u16>,
    },
    /// A sample of one GPU.
    Sampled {
        /// The sample.
        sample: GpuSample,
    },
    /// A process wants a larger sub-lease; answered by [`crate::action::Action::Answer`] with this
    /// id.
    Grow {
        /// Unique within the daemon's life.
        request: u64,
        /// The job.
        job: JobId,
        /// The process.
        process: ProcessKey,
        /// Where.
        gpu: GpuIndex,
        /// Bytes of the allocation.
        bytes: u64,
        /// Bytes it would hold with it (used and in flight).
        held: u64,
        /// 1 for the first request of an episode, 2 for a retry, …
        try_number: u32,
    },
    /// The requester of a pending [`Event::Grow`] is gone.
    GrowAbandoned {
        /// The request.
        request: u64,
    },
    /// The moment asked for by [`crate::action::Action::WakeAt`] has come.
    Woken,
}

/// One GPU of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// NVML's index.
    pub index: GpuIndex,
    /// NVML's UUID string, `GPU-…`.
    pub uuid: String,
    /// NVML's product name.
    pub name: String,
    /// Total memory in bytes.
    pub memory: u64,
    /// The best telemetry tier that works here.
    pub tier: Tier,
    /// How far the others are, those that NVML told of.
    #[serde(default)]
    pub peers: Vec<Peer>,
}

/// How far another GPU of the machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// The other one.
    pub gpu: GpuIndex,
    /// The way to it.
    pub link: Link,
}

/// Ways between two GPUs, shortest first (NVML's topology levels).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// NVLink.
    NvLink,
    /// On the same board.
    Board,
    /// One PCIe switch.
    Switch,
    /// Several PCIe switches.
    Switches,
    /// The CPU's host bridge.
    HostBridge,
    /// The same NUMA node.
    Node,
    /// Across NUMA nodes.
    System,
}

/// One process's account on one GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessGpu {
    /// The GPU.
    pub gpu: GpuIndex,
    /// Bytes held by the ledger, or by NVML where the ledger says less than NVML proves.
    pub used: u64,
    /// Bytes in flight.
    pub inflight: u64,
    /// Bytes NVML attributes to the process there, context included; `None` if unknown.
    pub nvml: Option<u64>,
    /// The last refusal, if it was never recovered from and nothing was launched since.
    pub refusal: Option<u64>,
}

/// What telemetry says about one GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuSample {
    /// The GPU.
    pub gpu: GpuIndex,
    /// Share of time an SM was active (GPM, DCGM) or any kernel ran (NVML utilisation),
    /// thousandths. `None`: missing, stale or NaN: never read as idle.
    pub sm_active: Option<u16>,
    /// SM occupancy, thousandths; `None` where the tier has none.
    pub sm_occupancy: Option<u16>,
    /// Share of time device memory was active, thousandths; `None` where the tier has none.
    pub dram_active: Option<u16>,
    /// Bytes in use on the device by all processes and the driver; `None`: not answered.
    pub used: Option<u64>,
    /// Processes on the GPU that belong to no job.
    pub foreign: Vec<ForeignProcess>,
    /// Bytes NVML attributes to each job there, ascending by job.
    pub jobs: Vec<(JobId, u64)>,
}

/// A GPU process nobody submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignProcess {
    /// Its pid.
    pub pid: u32,
    /// Its user, if `/proc` told.
    pub uid: Option<u32>,
    /// Its command name, if `/proc` told.
    pub command: Option<String>,
    /// Bytes NVML attributes to it.
    pub bytes: u64,
}

impl Event {
    /// Whether it must be on disk before the core's actions are carried out.
    #[must_use]
    pub const fn is_durable(&self) -> bool {
        matches!(
            self,
            Self::Configured { .. }
                | Self::MachineFound { .. }
                | Self::Submitted { .. }
                | Self::CancelRequested { .. }
                | Self::Started { .. }
                | Self::StartFailed { .. }
                | Self::Ended { .. }
        )
    }
}
