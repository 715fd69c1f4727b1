//! Why an allocation was refused.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::text::bytes;
use crate::id::JobId;

/// Why a `grow` was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Denial {
    /// The GPU's remaining room is promised to others.
    NoRoom {
        /// Bytes asked for beyond the job's lease.
        request: u64,
        /// Bytes that can still be promised.
        available: u64,
    },
    /// The job declared less with `--gpu-mem`.
    BeyondDeclared {
        /// Bytes the job would hold.
        held: u64,
        /// Bytes it declared.
        declared: u64,
    },
    /// The job does not hold that GPU.
    NotHeld,
    /// It would not fit even if the job were alone.
    ExceedsCapacity {
        /// Bytes the job would hold.
        held: u64,
        /// Bytes one job can hold there.
        capacity: u64,
    },
    /// It waited for younger jobs to make room and none came in time.
    WaitedInVain {
        /// Bytes asked for.
        request: u64,
        /// Milliseconds waited.
        waited_ms: u64,
    },
    /// The job is being stopped for another.
    BeingEvicted {
        /// The job that needs the room.
        job: JobId,
    },
    /// Memory use nobody can deny exceeded what was promised.
    Overdraft,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoom { request, available } => write!(
                f,
                "asked for {}, {} can still be promised",
                bytes(*request),
                bytes(*available)
            ),
            Self::BeyondDeclared { held, declared } => write!(
                f,
                "would hold {}, declared {} with --gpu-mem",
                bytes(*held),
                bytes(*declared)
            ),
            Self::NotHeld => f.write_str("the job does not hold that GPU"),
            Self::ExceedsCapacity { held, capacity } => write!(
                f,
                "would hold {}, one job can hold {} there",
                bytes(*held),
                bytes(*capacity)
            ),
            Self::WaitedInVain { request, waited_ms } => write!(
                f,
                "waited {waited_ms} ms for {} and younger jobs released too little",
                bytes(*request)
            ),
            Self::BeingEvicted { job } => write!(f, "being stopped to make room for job {job}"),
            Self::Overdraft => {
                f.write_str("more memory is in use than was promised; grants stopped")
            }
        }
    }
}
