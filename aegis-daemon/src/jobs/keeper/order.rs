//! What the daemon orders a keeper to do.

use aegis_common::bytes::ByteString;
use aegis_common::id::{GpuIndex, JobId};
use serde::{Deserialize, Serialize};

/// Raised when older keepers cannot follow an order. Daemon and keeper are the same file except
/// while it is being replaced.
pub(crate) const ORDER_VERSION: u32 = 1;

/// An order. Holds the job's environment and secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) version: u32,
    pub(crate) job: JobId,
    pub(crate) attempt: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    /// Program and arguments.
    pub(crate) argv: Vec<ByteString>,
    pub(crate) cwd: ByteString,
    /// The complete environment.
    pub(crate) env: Vec<ByteString>,
    pub(crate) umask: u32,
    pub(crate) gpus: Vec<GpuIndex>,
    #[serde(with = "crate::store::digits")]
    pub(crate) token: [u8; 32],
    pub(crate) state_dir: ByteString,
    pub(crate) runtime_dir: ByteString,
    /// Between SIGTERM and SIGKILL for what the command leaves behind, milliseconds.
    pub(crate) grace_ms: u64,
    /// Credentials stay as they are.
    pub(crate) rootless: bool,
    /// The keeper's parent. If it is another when the start record is to be made, the daemon died
    /// and its successor decides.
    pub(crate) daemon: u32,
}
