//! Starting, watching, stopping and adopting attempts; one keeper process per attempt.
//!
//! ```text
//!   owner --start, stop, hold--> Keepers --order (memfd), commands (socket)--> keeper --> the job
//!     ^                             |                                            |
//!     +-------- KeeperEvent --------+ <--- pidfd, start and end records ---------+
//! ```
//!
//! What the socket says are hints; the truth is on disk. An attempt runs if and only if its start
//! record exists, it has ended with its end record, and it is lost if its keeper is gone without
//! one.

mod adopt;
mod boot;
mod conclude;
mod control;
mod environment;
mod followed;
pub mod keeper;
mod keepers;
mod layout;
mod leftovers;
mod membership;
mod record;
mod spawn;
mod supervise;
mod tree;

pub use adopt::{Found, FoundState};
pub use keepers::{JobsError, KeeperEvent, Keepers, KeepersConfig, StartOrder};
pub use layout::{keeper_pids, log_path};
