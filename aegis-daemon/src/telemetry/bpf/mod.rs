//! Processes of jobs, followed by the kernel itself (`aegis-ebpf`).
//!
//! ```text
//!   jobs --follow--> FOLLOWED (kernel) --fork, exec, exit--> ring buffer --> LifecycleEvent --> owner
//!     ^                  |
//!     +--- processes ----+
//! ```
//!
//! Who belongs to a job is asked of the kernel's own set, which stays exact whatever happens to the
//! ring buffer; events only tell how processes ended. Nothing depends on it: without root, without
//! type information in the kernel or without the object, [`Lifecycle::start`] says why, and `/proc`
//! and pidfds carry on.
//!
//! A process's end is still taken from its pidfd: at the tracepoint its device files are open, and
//! its GPU memory is not yet free.

#[cfg(not(feature = "ebpf"))]
mod absent;
#[cfg(feature = "ebpf")]
mod btf;
#[cfg(feature = "ebpf")]
mod load;
#[cfg(feature = "ebpf")]
mod record;
#[cfg(feature = "ebpf")]
mod set;
#[cfg(all(test, feature = "ebpf"))]
mod tests;

#[cfg(not(feature = "ebpf"))]
pub use absent::Lifecycle;
#[cfg(feature = "ebpf")]
pub use set::Lifecycle;

use aegis_common::id::{JobId, ProcessKey};
use aegis_common::job::Exit;

/// Why processes are not followed by the kernel.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// Built without the feature or the object.
    #[error("this aegisd was built without its BPF programs")]
    NotBuilt,
    /// Not root.
    #[error("only root may load BPF programs")]
    NotRoot,
    /// No or strange type information.
    #[error("the kernel's type information, /sys/kernel/btf/vmlinux: {0}")]
    Types(String),
    /// The kernel refuses.
    #[error("the kernel refuses the BPF programs: {0}")]
    Refused(String),
}

impl Unavailable {
    /// What can be done about it.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NotBuilt => "run cargo xtask ebpf, then build and install aegisd again",
            Self::NotRoot => "run aegisd as root",
            Self::Types(_) => "use a kernel with CONFIG_DEBUG_INFO_BTF, 5.8 or newer",
            Self::Refused(_) => "see whether the kernel is locked down or aegisd lacks CAP_BPF",
        }
    }
}

/// What happened to a process of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifecycleEvent {
    /// It began.
    Forked {
        /// Its job and attempt.
        attempt: (JobId, u32),
        /// The new process.
        process: ProcessKey,
        /// The process that forked.
        parent: u32,
    },
    /// It runs another program.
    Executed {
        /// Its job and attempt.
        attempt: (JobId, u32),
        /// The process.
        process: ProcessKey,
        /// The program's name, at most 15 bytes.
        command: String,
    },
    /// It ended.
    Exited(Exited),
    /// Events were lost; this many since the daemon started.
    Lost {
        /// Events.
        total: u64,
    },
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exited {
    /// Its job and attempt.
    pub attempt: (JobId, u32),
    /// The process.
    pub process: ProcessKey,
    /// The program's name, at most 15 bytes.
    pub command: String,
    /// Its status.
    pub exit: Exit,
    /// For a deadly signal: who sent it, if that is known.
    pub sender: Option<Sender>,
    /// The kernel ended it for lack of memory.
    pub out_of_memory: bool,
}

/// Who sent a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The kernel: a fault, a limit, lack of memory.
    Kernel,
    /// A process.
    Process {
        /// Its pid.
        pid: u32,
        /// Its user.
        uid: u32,
    },
}
