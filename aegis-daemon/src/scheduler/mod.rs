//! The scheduler core: event in, actions out. No I/O, clock or randomness.
//!
//! ```text
//!   event --> core::step
//!               lifecycle   submit, cancel, start; ending: retry or finish; recover: OOM ladder
//!               process     attach, launch, usage; gpu samples
//!               grow        sub-leases: grant | wait | deny; evict
//!             then, whatever the event
//!               observe     phases advance, budgets shrink
//!               grow        waiting requests are looked at again
//!               rescue      overdrawn GPUs
//!               reserve     the starving head gets named GPUs
//!               place       facts per GPU -> obstacles per job -> starts
//!               wake        the next moment anything is due
//! ```
//!
//! A job starts on a GPU if and only if `obstacle` finds nothing, and [`Core::explain`] lists
//! what it finds: a decision and its explanation cannot differ.
#![forbid(unsafe_code)]

mod budget;
mod closest;
mod core;
mod demand;
mod ending;
mod evict;
mod explain;
mod facts;
mod feasible;
mod gate;
mod gpu;
mod grow;
mod interference;
mod job;
mod learn;
mod lifecycle;
mod load;
mod machine;
mod observe;
mod obstacle;
mod order;
mod place;
mod process;
mod progress;
mod queue;
mod quote;
mod recent;
mod recover;
mod reserve;
mod resume;
mod usage;
mod usual;
mod view;
mod wake;

#[cfg(test)]
mod tests;

pub use self::core::Core;
pub use self::explain::Explainer;
pub use self::feasible::Infeasible;
pub use self::view::{AttemptSummary, JobSummary};
