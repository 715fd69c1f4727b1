//! Answers on a shim connection.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use aegis_common::abi::message::{Answer, REQUEST_BYTES, Verdict, WAIT_MAX_MS};
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, recv, send, sendmsg,
    shutdown,
};
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

use super::caps::Slot;
use crate::sys::reactor;

/// One connection, counted against its user's cap while anybody holds it.
#[derive(Debug)]
pub(super) struct Channel {
    socket: AsyncFd<OwnedFd>,
    _slot: Slot,
}

impl Channel {
    /// `socket` must be non-blocking.
    pub(super) fn new(socket: OwnedFd, slot: Slot) -> io::Result<Self> {
        Ok(Self {
            socket: reactor::watch(socket)?,
            _slot: slot,
        })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }

    /// The next packet, cut after [`REQUEST_BYTES`] + 1 bytes (so an oversized one is seen to be
    /// one); empty when the peer hung up. Descriptors sent along are dropped by the kernel.
    pub(super) async fn receive(&self) -> io::Result<Vec<u8>> {
        let mut packet = vec![0; REQUEST_BYTES + 1];
        loop {
            let mut ready = self.socket.readable().await?;
            match recv(self.as_fd(), packet.as_mut_slice(), RecvFlags::DONTWAIT) {
                Ok((_, len)) => {
                    packet.truncate(len);
                    return Ok(packet);
                }
                Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Ends the conversation although somebody may still hold the channel.
    pub(super) fn hang_up(&self) {
        // An error means that the peer was faster.
        let _ = shutdown(self.as_fd(), Shutdown::Both);
    }

    /// Never blocks: an answer is far smaller than an empty socket buffer.
    fn send(&self, answer: &Answer) -> io::Result<()> {
        send(self.as_fd(), &answer.to_bytes(), FLAGS)?;
        Ok(())
    }

    fn send_with(&self, answer: &Answer, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::Error::other("no room for the descriptors"));
        }
        let bytes = answer.to_bytes();
        sendmsg(self.as_fd(), &[IoSlice::new(&bytes)], &mut control, FLAGS)?;
        Ok(())
    }
}

const FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

const fn answer(verdict: Verdict, wait_ms: u32, limit: u64) -> Answer {
    Answer {
        verdict,
        wait_ms,
        limit,
    }
}

/// The answer to a hello.
#[derive(Debug)]
pub struct HelloReply(Arc<Channel>);

impl HelloReply {
    pub(super) fn new(channel: Arc<Channel>) -> Self {
        Self(channel)
    }

    /// Hands over the ledger (read-write) and the lease page (read-only descriptor, see
    /// [`super::LeasePage::read_only_fd`]).
    ///
    /// # Errors
    ///
    /// The process hung up: it runs without AEGIS.
    pub fn accept(self, ledger: BorrowedFd<'_>, lease: BorrowedFd<'_>) -> io::Result<()> {
        let granted = answer(Verdict::Granted, 0, 0);
        self.0.send_with(&granted, &[ledger, lease])
    }

    /// Makes the process run without AEGIS: [`Verdict::Unknown`] or [`Verdict::Incompatible`].
    pub fn refuse(self, verdict: Verdict) {
        // Whoever hung up already runs without AEGIS.
        let _ = self.0.send(&answer(verdict, 0, 0));
    }
}

/// The answer to a grow. Dropping it unanswered leaves the decision to the shim, as if the daemon
/// had gone (contract C3).
#[derive(Debug)]
pub struct GrowReply {
    channel: Arc<Channel>,
    /// Dropped with the reply: wakes the task that watches for the peer hanging up.
    _answered: oneshot::Sender<()>,
}

impl GrowReply {
    /// The reply, and what resolves once it is used up.
    pub(super) fn new(channel: Arc<Channel>) -> (Self, oneshot::Receiver<()>) {
        let (answered, used_up) = oneshot::channel();
        let reply = Self {
            channel,
            _answered: answered,
        };
        (reply, used_up)
    }

    /// Not now: the final answer follows within `wait_ms` (at most [`WAIT_MAX_MS`]).
    ///
    /// # Errors
    ///
    /// The requester hung up; [`super::ShimEvent::GrowAbandoned`] follows.
    pub fn wait(&mut self, wait_ms: u32) -> io::Result<()> {
        let wait = answer(Verdict::Wait, wait_ms.min(WAIT_MAX_MS), 0);
        self.channel.send(&wait)
    }

    /// The new limit is already in the lease page.
    ///
    /// # Errors
    ///
    /// The requester hung up without knowing of its new limit.
    pub fn grant(self, limit: u64) -> io::Result<()> {
        self.channel.send(&answer(Verdict::Granted, 0, limit))
    }

    /// Refused; `limit` stays.
    ///
    /// # Errors
    ///
    /// The requester hung up.
    pub fn deny(self, limit: u64) -> io::Result<()> {
        self.channel.send(&answer(Verdict::Denied, 0, limit))
    }

    /// Refused for another reason: [`Verdict::Unknown`] for a token or peer that belongs to no job.
    pub fn refuse(self, verdict: Verdict) {
        // Whoever hung up needs no answer.
        let _ = self.channel.send(&answer(verdict, 0, 0));
    }
}
