//! What a client may ask.

use serde::{Deserialize, Serialize};

use super::HistoryFilter;
use crate::bytes::ByteString;
use crate::id::{JobId, Moment};
use crate::job::Resources;

/// A request frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// First frame of a connection.
    Hello {
        /// The client's [`super::PROTOCOL`].
        protocol: u32,
        /// The client's version, for messages.
        version: String,
    },
    /// Accept a job. Answered once the job is on disk.
    Submit(Box<Submit>),
    /// Live jobs, and with `all` the finished ones too.
    Queue {
        /// Include finished jobs, newest first.
        all: bool,
        /// Only this user's jobs.
        uid: Option<u32>,
        /// At most this many finished jobs.
        limit: Option<u32>,
    },
    /// One job.
    Status {
        /// The job.
        job: JobId,
    },
    /// Why a job is where it is.
    Explain {
        /// The job.
        job: JobId,
    },
    /// Answered when all the jobs are over. An unknown one fails the request at once, named by
    /// [`super::Failure::job`].
    Wait {
        /// The jobs.
        jobs: Vec<JobId>,
    },
    /// Answered with [`super::Response::Status`] as soon as the job has started an attempt later
    /// than `after` (its log exists), or is over. `aegis log -f` goes from attempt to attempt by it.
    WaitAttempt {
        /// The job.
        job: JobId,
        /// The last attempt already seen; 0: none.
        after: u32,
    },
    /// End jobs. Nothing is done, and [`super::Failure::job`] names the obstacle, if any of them is
    /// unknown or somebody else's; jobs that are over already are no obstacle. Answered when their process trees are gone (or the request was refused).
    Cancel {
        /// The jobs.
        jobs: Vec<JobId>,
    },
    /// The GPUs and who is on them.
    Gpus,
    /// Ledgers, leases and counters of all processes, of one, or of one job.
    Inspect {
        /// Only this process.
        pid: Option<u32>,
        /// Only this job.
        job: Option<JobId>,
    },
    /// What earlier runs taught.
    History {
        /// Of which commands.
        filter: HistoryFilter,
    },
    /// Forget what earlier runs taught. A filter without jobs and words means everything, which
    /// must be said.
    Forget {
        /// Of which commands.
        filter: HistoryFilter,
        /// All of them.
        everything: bool,
    },
    /// Finished jobs as a trace needs them, by number; one's own, root everybody's.
    PastJobs {
        /// Over since then.
        since: Moment,
        /// Only jobs after this one: the last of the answer before.
        after: Option<JobId>,
    },
    /// The daemon's own checks.
    Doctor,
}

/// A job as submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submit {
    /// What it asks of the scheduler. `requeue`, `retries`, `time_limit_s` and `on_suspend` are set
    /// by the daemon from the following and its configuration.
    pub resources: Resources,
    /// `--requeue` / `--no-requeue`; `None`: the administrator's default.
    pub requeue: Option<bool>,
    /// `--retries`; `None`: the administrator's default.
    pub retries: Option<u32>,
    /// `--on-suspend`: it saves its state and exits when it gets this signal.
    #[serde(default)]
    pub on_suspend: Option<SuspendWish>,
    /// A name for lists; `None`: the program's file name.
    pub name: Option<String>,
    /// How to launch it.
    pub launch: Launch,
}

/// How a job wants to be asked to save its state and exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspendWish {
    /// Signal number.
    pub signal: i32,
    /// Seconds it needs at most; `None`: the administrator's default.
    pub grace_s: Option<u32>,
}

/// Everything needed to run the command as the user would have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Program and arguments, byte-exact; at least the program.
    pub argv: Vec<ByteString>,
    /// Working directory, absolute.
    pub cwd: ByteString,
    /// Environment as `KEY=VALUE`.
    pub env: Vec<ByteString>,
    /// The submitter's umask.
    pub umask: u32,
}
