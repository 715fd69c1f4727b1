//! Replay: what would a policy have done with these jobs on that machine?
//!
//! ```text
//!   trace (generator | importer | history) --> machine (truth) --event--> Scheduler --action--> machine
//!                                                 |
//!                                                 +--> report (ratios), plot (SVG)
//! ```
//!
//! The daemon's [`Core`](crate::scheduler::Core) and the published baselines implement
//! [`Scheduler`](scheduler::Scheduler); the machine plays keepers, shims and telemetry around it. A scheduler sees only
//! the event types the daemon journals: never a true duration, peak, workload name, pair
//! slowdown, a job's own SM activity while it shares, or anything that has not happened yet.
//! Published baselines that assume an offline profile are constructed with it, and say so.
#![forbid(unsafe_code)]

pub mod baseline;
mod case;
pub mod catalogue;
pub mod generate;
mod machine;
mod number;
pub mod outcome;
mod parallel;
pub mod plot;
pub mod policy;
pub mod profile;
pub mod random;
mod report;
mod run;
pub mod scheduler;
pub mod stats;
pub mod trace;
mod truth;
pub mod workload;

#[cfg(test)]
mod tests;

pub use case::Case;
pub use machine::{History, MachineConfig};
pub use outcome::Outcome;
pub use parallel::parallel;
pub use report::Report;
pub use run::{run, run_with_history};
pub use trace::Trace;
pub use truth::{Cells, Interference};
