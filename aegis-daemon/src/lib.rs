//! The AEGIS daemon `aegisd` and its command line `aegis`.
//!
//! ```text
//!   cli --wire--> api --> owner --event--> scheduler (pure) --action--> owner --> jobs, lease, store
//!                           ^                                                      |
//!                           +------------ telemetry, lease, jobs ------------------+
//! ```
//!
//! [`owner`] is the one task that owns all state; everything else sends it messages. It writes
//! each durable event to the [`store`]'s journal, feeds it to the [`scheduler`] core, and only then
//! carries out the core's actions.

pub mod api;
pub mod cli;
pub mod config;
pub mod failpoint;
pub mod jobs;
pub mod learning;
pub mod lease;
pub mod owner;
mod procfs;
pub mod replay;
pub mod scheduler;
pub mod serve;
pub mod store;
pub mod sys;
pub mod telemetry;
