//! Fixed-size messages on the shim socket (SOCK_SEQPACKET, one message per packet).
//!
//! Each connection carries one request and its answer: `hello` once per process, `grow` once per
//! allocation that does not fit the sub-lease, `note` for what the daemon should know at once.
//! A `grow` may be answered by [`Verdict::Wait`] first; the final answer follows on the same
//! connection. The peer's pid and uid come from the socket, never from the message.

use super::{ABI_MAJOR, ABI_MINOR, GpuUuid, MAGIC};

/// Bytes of a request.
pub const REQUEST_BYTES: usize = 128;
/// Bytes of an answer.
pub const ANSWER_BYTES: usize = 64;

/// How long the shim tries to connect for its `hello` while the listen queue is full, milliseconds.
/// With nobody listening it gives up at once.
pub const HELLO_DEADLINE_MS: i32 = 50;
/// How long the shim then waits for the answer to `hello`, milliseconds. Longer than connecting: a
/// daemon that listens is alive, and a job that it cannot see never shares a GPU, so on a busy
/// machine patience once per process is worth it.
pub const HELLO_ANSWER_MS: i32 = 1000;
/// How long the shim waits for the first answer to `grow`, milliseconds.
pub const GROW_DEADLINE_MS: i32 = 2000;
/// Longest wait the daemon may ask for, milliseconds (contract C4).
pub const WAIT_MAX_MS: u32 = 20_000;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Op {
    /// Register the process. Answered with two descriptors: ledger (read-write), lease (read-only).
    Hello = 1,
    /// Raise the sub-lease on a GPU.
    Grow = 2,
    /// The process launched for the first time. No answer.
    FirstLaunch = 3,
    /// An episode of refusals began (`bytes`: the request; the ledger has the rest). No answer.
    Refused = 4,
}

/// The daemon's decision about a `hello` or `grow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Verdict {
    /// Done; for `grow` the new limit is already in the lease page.
    Granted = 1,
    /// Not now; the final answer follows within `wait_ms`.
    Wait = 2,
    /// Refused.
    Denied = 3,
    /// The job token is unknown or the peer does not belong to the job: run without AEGIS.
    Unknown = 4,
    /// The ABI versions differ: run without AEGIS.
    Incompatible = 5,
}

/// A request in memory order; [`Request::to_bytes`] gives the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is asked.
    pub op: Op,
    /// The sender's [`ABI_MAJOR`].
    pub abi_major: u32,
    /// The sender's [`ABI_MINOR`].
    pub abi_minor: u32,
    /// The job's secret, 32 hexadecimal digits.
    pub token: [u8; 32],
    /// The GPU (`Grow`, `Refused`).
    pub gpu: GpuUuid,
    /// Bytes of the request (`Grow`, `Refused`).
    pub bytes: u64,
    /// Bytes held on that GPU plus bytes in flight, this request included (`Grow`).
    pub held: u64,
    /// 1-based number of this request within its episode (`Grow`): a client that retries sends 2.
    pub try_number: u32,
}

/// An answer; [`Answer::to_bytes`] gives the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The decision.
    pub verdict: Verdict,
    /// With [`Verdict::Wait`]: the final answer comes within this time.
    pub wait_ms: u32,
    /// The limit now in the lease page, bytes.
    pub limit: u64,
}

impl Op {
    /// The operation with that number.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Hello,
            2 => Self::Grow,
            3 => Self::FirstLaunch,
            4 => Self::Refused,
            _ => return None,
        })
    }
}

impl Verdict {
    /// The verdict with that number.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Granted,
            2 => Self::Wait,
            3 => Self::Denied,
            4 => Self::Unknown,
            5 => Self::Incompatible,
            _ => return None,
        })
    }
}

impl Request {
    /// A request of this build's ABI version with the rest zero.
    #[must_use]
    pub const fn new(op: Op, token: [u8; 32]) -> Self {
        Self {
            op,
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            token,
            gpu: [0; 16],
            bytes: 0,
            held: 0,
            try_number: 0,
        }
    }

    /// The packet.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; REQUEST_BYTES] {
        let mut out = [0; REQUEST_BYTES];
        put(&mut out, 0, &MAGIC.to_ne_bytes());
        put(&mut out, 8, &self.abi_major.to_ne_bytes());
        put(&mut out, 12, &self.abi_minor.to_ne_bytes());
        put(&mut out, 16, &(self.op as u32).to_ne_bytes());
        put(&mut out, 20, &self.try_number.to_ne_bytes());
        put(&mut out, 24, &self.token);
        put(&mut out, 56, &self.gpu);
        put(&mut out, 72, &self.bytes.to_ne_bytes());
        put(&mut out, 80, &self.held.to_ne_bytes());
        out
    }

    /// Reads a packet. `None`: wrong size, magic or operation. The caller compares the versions.
    #[must_use]
    pub fn from_bytes(packet: &[u8]) -> Option<Self> {
        let packet: &[u8; REQUEST_BYTES] = packet.try_into().ok()?;
        if u64::from_ne_bytes(take(packet, 0)) != MAGIC {
            return None;
        }
        Some(Self {
            op: Op::from_number(u32::from_ne_bytes(take(packet, 16)))?,
            abi_major: u32::from_ne_bytes(take(packet, 8)),
            abi_minor: u32::from_ne_bytes(take(packet, 12)),
            try_number: u32::from_ne_bytes(take(packet, 20)),
            token: take(packet, 24),
            gpu: take(packet, 56),
            bytes: u64::from_ne_bytes(take(packet, 72)),
            held: u64::from_ne_bytes(take(packet, 80)),
        })
    }
}

impl Answer {
    /// The packet.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; ANSWER_BYTES] {
        let mut out = [0; ANSWER_BYTES];
        put(&mut out, 0, &MAGIC.to_ne_bytes());
        put(&mut out, 8, &ABI_MAJOR.to_ne_bytes());
        put(&mut out, 12, &(self.verdict as u32).to_ne_bytes());
        put(&mut out, 16, &self.wait_ms.to_ne_bytes());
        put(&mut out, 24, &self.limit.to_ne_bytes());
        out
    }

    /// Reads a packet. `None`: wrong size, magic, version or verdict.
    #[must_use]
    pub fn from_bytes(packet: &[u8]) -> Option<Self> {
        let packet: &[u8; ANSWER_BYTES] = packet.try_into().ok()?;
        if u64::from_ne_bytes(take(packet, 0)) != MAGIC
            || u32::from_ne_bytes(take(packet, 8)) != ABI_MAJOR
        {
            return None;
        }
        Some(Self {
            verdict: Verdict::from_number(u32::from_ne_bytes(take(packet, 12)))?,
            wait_ms: u32::from_ne_bytes(take(packet, 16)),
            limit: u64::from_ne_bytes(take(packet, 24)),
        })
    }
}

fn put<const N: usize, const M: usize>(out: &mut [u8; N], at: usize, value: &[u8; M]) {
    for (slot, byte) in out.iter_mut().skip(at).zip(value) {
        *slot = *byte;
    }
}

fn take<const N: usize, const M: usize>(packet: &[u8; N], at: usize) -> [u8; M] {
    let mut value = [0; M];
    for (slot, byte) in value.iter_mut().zip(packet.iter().skip(at)) {
        *slot = *byte;
    }
    value
}
