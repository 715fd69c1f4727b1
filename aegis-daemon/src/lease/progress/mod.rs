//! From launch traces to progress: how often a process repeats its launch sequence (contract C6).
//!
//! ```text
//!   trace (hostile) --> Trace --> period --> fingerprint
//!                         |          |            |
//!                         +----------+---> Tracker: a window in which nothing else was launched
//!                                                 --> Pace { fingerprint, rate }
//! ```
//!
//! Launches per second say nothing (a graph launch may be a thousand kernels); repetitions per
//! second of one and the same sequence do. Whatever is not certain gives no pace.

mod fingerprint;
mod period;
#[cfg(test)]
mod tests;
mod trace;
mod tracker;

pub use trace::Trace;
pub use tracker::{Pace, Tracker};
