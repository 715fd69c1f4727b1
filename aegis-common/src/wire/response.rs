//! What the daemon answers.

use serde::{Deserialize, Serialize};

use super::history::{HistoryEntry, PastJob};
use super::view::{DaemonView, Explanation, GpuView, Inspection, JobView, QueueView};
use crate::id::JobId;

/// A response frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "response", rename_all = "snake_case")]
pub enum Response {
    /// To `hello`.
    Hello {
        /// The daemon's [`super::PROTOCOL`].
        protocol: u32,
        /// The daemon's version.
        version: String,
    },
    /// To `submit`: the job is on disk.
    Submitted {
        /// The job.
        job: Box<JobView>,
        /// Why it does not start at once; empty if it started or is about to.
        explanation: Explanation,
    },
    /// To `queue`.
    Queue(QueueView),
    /// To `status` and `wait_attempt`.
    Status {
        /// The job.
        job: Box<JobView>,
    },
    /// To `explain`.
    Explained(Explanation),
    /// To `wait` and `cancel`: the jobs in the order asked for.
    Jobs {
        /// Their final views.
        jobs: Vec<JobView>,
    },
    /// To `gpus`.
    Gpus {
        /// By index.
        gpus: Vec<GpuView>,
    },
    /// To `inspect`.
    Inspected(Inspection),
    /// To `history`, and to `forget`: what was forgotten.
    History {
        /// Last used first.
        entries: Vec<HistoryEntry>,
    },
    /// To `past_jobs`.
    PastJobs {
        /// By number.
        jobs: Vec<PastJob>,
        /// There are more after the last one.
        more: bool,
    },
    /// To `doctor`.
    Doctor(DaemonView),
    /// To any request that could not be served.
    Failed(Failure),
}

/// Why a request was not served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Stable code; also the CLI's exit code through [`ErrorCode::exit_code`].
    pub code: ErrorCode,
    /// What is wrong, naming the field and the value.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// The job concerned.
    pub job: Option<JobId>,
}

impl Failure {
    /// A failure without a hint.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            job: None,
        }
    }
}

/// Kinds of failure. Each has a stable exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request cannot be understood or contradicts itself.
    BadRequest,
    /// No such job or process.
    NotFound,
    /// Somebody else's job.
    Forbidden,
    /// More than the machine has.
    Impossible,
    /// The daemon cannot write its journal.
    Storage,
    /// The daemon is not running or not reachable.
    Unreachable,
    /// Protocol versions differ.
    Incompatible,
    /// A defect in the daemon.
    Internal,
}

impl ErrorCode {
    /// The exit code of `aegis` for this failure.
    ///
    /// Codes lie between 64 and 78 where sysexits.h has a fitting meaning, so they do not collide
    /// with what `aegis wait` passes on from small exit codes of jobs.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::BadRequest => 64,
            Self::NotFound => 66,
            Self::Impossible => 67,
            Self::Unreachable => 69,
            Self::Internal => 70,
            Self::Storage => 74,
            Self::Incompatible => 76,
            Self::Forbidden => 77,
        }
    }
}
