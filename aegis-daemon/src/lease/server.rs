//! The shim socket: accepting connections.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;

use super::caps::{Caps, Excess, ShimLimits};
use super::connection::{Counters, ShimCounts, count, serve};
use super::event::ShimEvent;
use super::listener::{Listener, SocketFile};
use super::reply::Channel;
use crate::sys::reactor;
use crate::sys::seqpacket::peer_credentials;

/// How long to leave the queue alone when the process is out of descriptors or memory.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// Listens for shims until dropped.
#[derive(Debug)]
pub struct ShimServer {
    counters: Arc<Counters>,
    accepting: JoinHandle<()>,
}

impl ShimServer {
    /// Listens at `path` with [`ShimLimits::default`]. Must run inside the tokio runtime.
    ///
    /// # Errors
    ///
    /// `AddrInUse` if another daemon listens there, `InvalidInput` if the path is too long for a
    /// socket, `AlreadyExists` if something other than a socket is there; else whatever the kernel
    /// reports.
    pub fn bind(path: &Path, events: UnboundedSender<ShimEvent>) -> io::Result<Self> {
        Self::bind_with(path, ShimLimits::default(), events)
    }

    /// [`ShimServer::bind`] with other limits.
    ///
    /// # Errors
    ///
    /// As for [`ShimServer::bind`].
    pub fn bind_with(
        path: &Path,
        limits: ShimLimits,
        events: UnboundedSender<ShimEvent>,
    ) -> io::Result<Self> {
        let Listener { socket, file } = Listener::bind(path)?;
        let socket = reactor::watch(socket)?;
        let counters = Arc::new(Counters::default());
        let accepting = tokio::spawn(accept_all(
            socket,
            file,
            Caps::new(limits),
            Arc::clone(&counters),
            events,
        ));
        Ok(Self {
            counters,
            accepting,
        })
    }

    /// What was turned away so far.
    #[must_use]
    pub fn counts(&self) -> ShimCounts {
        self.counters.read()
    }
}

impl Drop for ShimServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept_all(
    listener: AsyncFd<OwnedFd>,
    _file: SocketFile,
    caps: Caps,
    counters: Arc<Counters>,
    events: UnboundedSender<ShimEvent>,
) {
    let began = Instant::now();
    loop {
        let mut ready = match listener.readable().await {
            Ok(ready) => ready,
            Err(error) => return tracing::error!(%error, "the shim socket is lost"),
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match accept_with(listener.get_ref(), flags) {
            Ok(socket) => admit(socket, &caps, began.elapsed(), &counters, &events),
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a shim");
                tokio::time::sleep(EXHAUSTED).await;
            }
        }
    }
}

fn admit(
    socket: OwnedFd,
    caps: &Caps,
    now: Duration,
    counters: &Arc<Counters>,
    events: &UnboundedSender<ShimEvent>,
) {
    let Ok(credentials) = peer_credentials(socket.as_fd()) else {
        return count(&counters.unidentified);
    };
    let slot = match caps.admit(credentials.uid, now) {
        Ok(slot) => slot,
        Err(Excess::Open) => return count(&counters.over_cap),
        Err(Excess::Rate) => return count(&counters.over_rate),
    };
    match Channel::new(socket, slot) {
        Ok(channel) => {
            let served = serve(channel, credentials, Arc::clone(counters), events.clone());
            tokio::spawn(served);
        }
        Err(error) => tracing::warn!(%error, "cannot watch a shim connection"),
    }
}
