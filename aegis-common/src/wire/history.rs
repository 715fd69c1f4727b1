//! What was learned from earlier runs, as users see it.

use serde::{Deserialize, Serialize};

use crate::id::{JobId, Moment};
use crate::learned::{Learned, Observed};

/// Which records of the learning store a request means: those that fit every given part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryFilter {
    /// Everybody's, not only one's own. Root's privilege.
    pub all_users: bool,
    /// Only the commands of these jobs.
    pub jobs: Vec<JobId>,
    /// Only commands in whose text each of these occurs.
    pub words: Vec<String>,
}

/// What is known of one command of one user on one GPU model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The owner's uid.
    pub uid: u32,
    /// The owner's user name, if known.
    pub user: Option<String>,
    /// The command in the form in which it is recognised: without wrappers and without what does
    /// not change what it needs; options by name.
    pub command: String,
    /// GPUs it asks for.
    pub gpus: u32,
    /// NVML's product name.
    pub gpu_model: String,
    /// Attempts kept, at most the newest 32.
    pub runs: u32,
    /// Those that ended with exit code 0.
    pub completed: u32,
    /// Those that ended out of memory.
    pub out_of_memory: u32,
    /// Those that ended otherwise: failed, cancelled, stopped.
    pub failed: u32,
    /// The middle one of the running times of completed attempts, milliseconds.
    pub duration_p50_ms: Option<u64>,
    /// What the next run is expected to need.
    pub learned: Learned,
    /// The newest job of this command.
    pub last_job: JobId,
    /// When it was last submitted or ended.
    pub last_used: Moment,
    /// The attempts kept, oldest first; left out where many commands were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<HistoryRun>,
}

/// One attempt that taught something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRun {
    /// The job.
    pub job: JobId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// What was seen.
    #[serde(flatten)]
    pub observed: Observed,
}

/// A finished job as a trace needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastJob {
    /// The job.
    pub job: JobId,
    /// The owner's uid.
    pub uid: u32,
    /// Its command in the form in which it is recognised.
    pub command: String,
    /// GPUs it asked for.
    pub gpus: u32,
    /// Bytes it declared on each GPU.
    pub gpu_mem: Option<u64>,
    /// Time limit, seconds.
    pub time_limit_s: Option<u64>,
    /// When it was accepted.
    pub submitted: Moment,
    /// When it was over.
    pub ended: Moment,
    /// It ended with exit code 0.
    pub completed: bool,
    /// Running time of all its attempts, milliseconds.
    pub ran_ms: u64,
    /// Running time of the last one, milliseconds.
    pub last_ran_ms: u64,
    /// Highest bytes any attempt held on any one GPU by its ledgers; 0: none.
    pub peak: u64,
    /// What its last attempt taught, if that is kept.
    pub observed: Option<Observed>,
}
