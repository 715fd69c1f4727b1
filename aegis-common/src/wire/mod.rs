//! The protocol between `aegis` and `aegisd`: frames of JSON over a Unix stream socket.
//!
//! A frame is a big-endian `u32` length and that many bytes of JSON, at most [`MAX_FRAME`]. The
//! client opens with [`Request`] frames and reads [`Response`] frames; every request is answered
//! by exactly one response, in order. The peer's user comes from `SO_PEERCRED`, never from a
//! message. Readers ignore fields they do not know.

mod history;
mod request;
mod response;
mod view;

pub use history::{HistoryEntry, HistoryFilter, HistoryRun, PastJob};
pub use request::{Launch, Request, Submit, SuspendWish};
pub use response::{ErrorCode, Failure, Response};
pub use view::{
    Attempt, Check, CheckState, DaemonView, Explained, Explanation, GpuProcess, GpuView, IdleGpu,
    Inspection, JobView, KindBytes, LedgerGpu, LedgerView, PaceView, QueueView,
};

/// Raised with every incompatible change of the messages.
pub const PROTOCOL: u32 = 1;
/// Longest frame in bytes. A command line is at most 2 MiB on Linux, an environment as much again.
pub const MAX_FRAME: usize = 16 << 20;
/// Longest name of a job in bytes.
pub const NAME_MAX: usize = 128;
