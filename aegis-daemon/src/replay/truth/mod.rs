//! What sharing really costs. Its form differs from every predictor in the core on purpose: a
//! policy must not win because it knows how it is judged.

mod cells;
mod contention;
mod interference;
mod noise;

pub use cells::Cells;
pub use interference::Interference;

pub(super) use contention::{Loader, share_cores};
pub(super) use interference::{Pairs, log_slowdown};
pub(super) use noise::{Noise, mix};
