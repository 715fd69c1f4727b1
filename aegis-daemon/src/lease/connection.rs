//! One shim connection: one request, its answer, and hanging up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aegis_common::abi::ABI_MAJOR;
use aegis_common::abi::message::{Op, Request, Verdict};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;

use super::event::ShimEvent;
use super::peer::identify;
use super::reply::{Channel, GrowReply, HelloReply};
use crate::sys::seqpacket::PeerCredentials;

/// A shim sends its request right after connecting. Whoever has not within this time never will.
const FIRST_PACKET: Duration = Duration::from_secs(2);

/// What was turned away since the server started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShimCounts {
    /// Requests answered or passed on.
    pub requests: u64,
    /// Packets of the wrong size, magic, version or operation, and connections without one.
    pub malformed: u64,
    /// Connections whose process could not be told.
    pub unidentified: u64,
    /// Connections over a user's or the total cap of open ones.
    pub over_cap: u64,
    /// Connections over a user's rate.
    pub over_rate: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) requests: AtomicU64,
    pub(super) malformed: AtomicU64,
    pub(super) unidentified: AtomicU64,
    pub(super) over_cap: AtomicU64,
    pub(super) over_rate: AtomicU64,
    pub(super) next_request: AtomicU64,
}

impl Counters {
    pub(super) fn read(&self) -> ShimCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ShimCounts {
            requests: load(&self.requests),
            malformed: load(&self.malformed),
            unidentified: load(&self.unidentified),
            over_cap: load(&self.over_cap),
            over_rate: load(&self.over_rate),
        }
    }
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Serves a connection to its end.
pub(super) async fn serve(
    channel: Channel,
    credentials: PeerCredentials,
    counters: Arc<Counters>,
    events: UnboundedSender<ShimEvent>,
) {
    let packet = match timeout(FIRST_PACKET, channel.receive()).await {
        Ok(Ok(packet)) => packet,
        Ok(Err(_)) | Err(_) => return count(&counters.malformed),
    };
    let Some(request) = Request::from_bytes(&packet) else {
        return count(&counters.malformed);
    };
    let (peer, pidfd) = match identify(channel.as_fd(), credentials) {
        Ok(identity) => identity,
        Err(error) => {
            tracing::debug!(pid = credentials.pid, uid = credentials.uid, %error, "unidentified shim");
            return count(&counters.unidentified);
        }
    };
    let channel = Arc::new(channel);
    if request.abi_major != ABI_MAJOR && request.op != Op::Hello {
        // A hello may come from any version and is told so; nothing else may follow it.
        count(&counters.malformed);
        return HelloReply::new(channel).refuse(Verdict::Incompatible);
    }
    count(&counters.requests);
    let token = request.token;
    let event = match request.op {
        Op::Hello => ShimEvent::Hello {
            peer,
            pidfd,
            token,
            abi: (request.abi_major, request.abi_minor),
            reply: HelloReply::new(channel),
        },
        Op::FirstLaunch => ShimEvent::FirstLaunch { peer, token },
        Op::Refused => ShimEvent::Refused {
            peer,
            token,
            gpu: request.gpu,
            bytes: request.bytes,
        },
        Op::Grow => {
            let (reply, used_up) = GrowReply::new(Arc::clone(&channel));
            let id = counters.next_request.fetch_add(1, Ordering::Relaxed);
            let grow = ShimEvent::Grow {
                request: id,
                peer,
                token,
                gpu: request.gpu,
                bytes: request.bytes,
                held: request.held,
                try_number: request.try_number,
                reply,
            };
            if events.send(grow).is_ok() {
                tokio::select! {
                    _ = used_up => {}
                    said = channel.receive() => {
                        // Nothing may be said before the answer: whoever does is as good as gone.
                        if said.is_ok_and(|packet| !packet.is_empty()) {
                            count(&counters.malformed);
                        }
                        channel.hang_up();
                        // The owner is gone only when the daemon ends.
                        let _ = events.send(ShimEvent::GrowAbandoned { request: id });
                    }
                }
            }
            return;
        }
    };
    // The owner is gone only when the daemon ends.
    let _ = events.send(event);
}
