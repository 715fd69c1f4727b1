//! The closed set of reasons: why a job waits, an allocation was refused, an attempt was stopped
//! or will be repeated. The same codes and numbers appear in the CLI, JSON, logs and metrics.

mod blocker;
mod denial;
mod stop;
mod text;

pub use blocker::{BLOCKER_CODES, Blocker};
pub use denial::Denial;
pub use stop::{RetryReason, StopReason};
pub use text::{bytes, permille};
