//! What a job asks for and what becomes of it.

use serde::{Deserialize, Serialize};

use crate::id::GpuIndex;
use crate::reason::StopReason;

/// What a job asks of the scheduler. The command itself is no business of the scheduler's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// GPUs, all held for the whole attempt; at least 1.
    pub gpus: u32,
    /// Declared peak in bytes on each GPU. `None`: unknown, starts with the first lease and grows.
    pub gpu_mem: Option<u64>,
    /// Higher starts first. Users may only lower it (below 0).
    pub priority: i32,
    /// Shares its GPUs with nobody.
    pub exclusive: bool,
    /// May be stopped and started again from the beginning to make room for an older job.
    pub requeue: bool,
    /// Attempts after the first that an out-of-memory end may use.
    pub retries: u32,
    /// Seconds of running time after which the attempt is stopped.
    pub time_limit_s: Option<u64>,
    /// It saves its state and exits when asked so: it may be stopped for others and resumed.
    #[serde(default)]
    pub on_suspend: Option<OnSuspend>,
}

/// How a job is asked to save its state and exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnSuspend {
    /// Signal number sent to the attempt's main process.
    pub signal: i32,
    /// Seconds it is given to exit.
    pub grace_s: u32,
}

/// How much slower a running job is than alone (contract C6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "slowdown", rename_all = "snake_case")]
pub enum Slowdown {
    /// Measured against the same launch sequence alone.
    Measured {
        /// Thousandths: 1000 is as fast as alone.
        permille: u32,
    },
    /// Not known. Nothing is done to a job because of a slowdown that is not known.
    Unknown {
        /// Why.
        why: SlowdownUnknown,
    },
}

/// Why a slowdown is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowdownUnknown {
    /// It does not run, or has not launched lately.
    NotLaunching,
    /// Its launches show no period.
    NoPeriod,
    /// The present launch sequence was never seen alone.
    NeverAlone,
    /// The host is the bottleneck: tasks wait for CPUs.
    CpuBound,
    /// The host is the bottleneck: tasks wait for I/O.
    IoBound,
}

/// How an attempt's main process ended, as `wait` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// `exit(code)`.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
    /// The keeper was killed: how the command ended cannot be known.
    Unknown,
}

impl Exit {
    /// The shell's convention: the code, 128 + the signal, or 255 if unknown.
    #[must_use]
    pub const fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
            Self::Unknown => 255,
        }
    }
}

/// A job's final state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Exit code 0.
    Ok,
    /// Ended by itself with another code or a signal.
    Failed {
        /// How it ended.
        exit: Exit,
    },
    /// Ran out of GPU memory and no further attempt could help or was allowed.
    Oom {
        /// How the last attempt ended.
        exit: Exit,
        /// Why it is final.
        why: OomFinal,
    },
    /// Cancelled by its owner or an administrator.
    Cancelled {
        /// Who asked, as a uid.
        by: u32,
    },
    /// Ran longer than its time limit.
    Timeout,
    /// The keeper was killed; how the command ended cannot be known.
    Lost,
    /// The command could not be started.
    StartFailed {
        /// The error with the path or field it concerns.
        error: String,
    },
}

/// Why an out-of-memory end was not retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OomFinal {
    /// The job had its GPUs to itself.
    WasExclusive,
    /// The request exceeds what a GPU of this machine has.
    ExceedsCapacity,
    /// No retries left.
    NoRetriesLeft,
}

/// Where a job is in its life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum JobState {
    /// Waits for GPUs; `aegis explain` lists what for.
    Pending,
    /// GPUs are held; the keeper is being started.
    Starting,
    /// The command runs.
    Running {
        /// How far the observation after placement is.
        phase: Phase,
    },
    /// Asked to end; the process tree is still there.
    Stopping {
        /// Why.
        why: StopReason,
    },
    /// Over.
    Done {
        /// How it ended.
        #[serde(flatten)]
        outcome: Outcome,
    },
}

/// Observation after placement (contract C7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// No launch yet: the window has not begun.
    WarmUp,
    /// From the first launch until memory has reached a plateau.
    Observing,
    /// Observed: the GPU is open to others again.
    Steady,
    /// No launch for long: the lease stays, the GPU is open to evictable jobs.
    Dormant,
}

/// What an attempt has on one GPU, as the daemon believes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// The GPU.
    pub gpu: GpuIndex,
    /// Bytes the job may hold there (budget of all its processes).
    pub lease: u64,
    /// Bytes reserved for contexts and modules, which no call shows.
    pub overhead: u64,
    /// Bytes its processes hold by their ledgers.
    pub used: u64,
    /// Highest `used` of this attempt.
    pub peak: u64,
}
