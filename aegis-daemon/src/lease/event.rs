//! What shims say, as the owner hears it.

use std::os::fd::OwnedFd;

use aegis_common::abi::GpuUuid;

use super::peer::ShimPeer;
use super::reply::{GrowReply, HelloReply};

/// The job's secret as sent: 32 hexadecimal digits, or anything at all from a liar.
pub type Token = [u8; 32];

/// A message of a shim. Whether the token names a job and the peer belongs to it is for the owner
/// to check (contract C12).
#[derive(Debug)]
pub enum ShimEvent {
    /// A process introduces itself.
    Hello {
        /// Who.
        peer: ShimPeer,
        /// Becomes readable when the process has exited; see [`super::wait_exit`].
        pidfd: OwnedFd,
        /// Its claim to a job.
        token: Token,
        /// The shim's ABI version, major and minor.
        abi: (u32, u32),
        /// Where to answer. Dropping it unanswered makes the process run without AEGIS.
        reply: HelloReply,
    },
    /// A process wants a larger sub-lease.
    Grow {
        /// Unique within this server's life.
        request: u64,
        /// Who.
        peer: ShimPeer,
        /// Its claim to a job.
        token: Token,
        /// Where.
        gpu: GpuUuid,
        /// Bytes of the allocation.
        bytes: u64,
        /// Bytes it would hold with it (used and in flight).
        held: u64,
        /// 1 for the first request of an episode, 2 for a retry.
        try_number: u32,
        /// Where to answer.
        reply: GrowReply,
    },
    /// The requester of a [`ShimEvent::Grow`] hung up before the final answer. May cross with
    /// that answer; comes at most once per request.
    GrowAbandoned {
        /// The request.
        request: u64,
    },
    /// A process launched for the first time.
    FirstLaunch {
        /// Who.
        peer: ShimPeer,
        /// Its claim to a job.
        token: Token,
    },
    /// An episode of refusals began.
    Refused {
        /// Who.
        peer: ShimPeer,
        /// Its claim to a job.
        token: Token,
        /// Where.
        gpu: GpuUuid,
        /// Bytes of the refused request.
        bytes: u64,
    },
}
