//! Why an attempt is stopped or repeated.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::text::bytes;
use crate::id::{GpuIndex, JobId};

/// Why the daemon ends an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum StopReason {
    /// The owner or an administrator asked.
    Cancelled {
        /// Their uid.
        by: u32,
    },
    /// The time limit passed.
    TimeLimit {
        /// The limit in seconds.
        limit_s: u64,
    },
    /// An older job needs the room.
    Evicted {
        /// The older job.
        job: JobId,
        /// Where.
        gpu: GpuIndex,
        /// Bytes it asked for.
        bytes: u64,
    },
    /// Undeniable memory use exceeded what was promised.
    Rescue {
        /// Where.
        gpu: GpuIndex,
        /// Bytes over.
        over: u64,
    },
}

/// Why a further attempt follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum RetryReason {
    /// Out of memory: the next attempt starts with a higher floor.
    Oom {
        /// Where.
        gpu: GpuIndex,
        /// The refused request in bytes.
        request: u64,
        /// The attempt's peak there in bytes.
        peak: u64,
        /// Bytes the next attempt is promised before it starts.
        floor: u64,
        /// The next attempt has its GPUs to itself.
        exclusive: bool,
    },
    /// It made room for an older job; no retry is used up.
    Evicted {
        /// The older job.
        job: JobId,
    },
    /// It was stopped because memory was overdrawn; no retry is used up.
    Rescue,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled { by } => write!(f, "cancelled by uid {by}"),
            Self::TimeLimit { limit_s } => write!(f, "ran longer than its limit of {limit_s} s"),
            Self::Evicted {
                job,
                gpu,
                bytes: need,
            } => write!(
                f,
                "stopped to give the older job {job} {} on GPU {gpu}",
                bytes(*need)
            ),
            Self::Rescue { gpu, over } => write!(
                f,
                "stopped because GPU {gpu} has {} more in use than promised",
                bytes(*over)
            ),
        }
    }
}

impl fmt::Display for RetryReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Oom {
                gpu,
                request,
                peak,
                floor,
                exclusive,
            } => write!(
                f,
                "out of memory on GPU {gpu}: {} refused at a peak of {}; next attempt {} {}",
                bytes(*request),
                bytes(*peak),
                if *exclusive { "alone, with" } else { "with" },
                bytes(*floor)
            ),
            Self::Evicted { job } => write!(f, "made room for the older job {job}"),
            Self::Rescue => f.write_str("stopped to end an overdraft"),
        }
    }
}
