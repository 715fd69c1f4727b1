//! Data-parallel ranks as processes: a parent that starts them, keeps them in step, and ends the
//! others when one fails, as torchrun does.
//!
//! Each rank's stdin is a socket to the parent: a byte up says "my gradients are ready", a byte down
//! says "everybody's are". Its value says whether to stop after this step.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::WorkloadError;

/// Where ranks wait for each other.
pub(super) trait Rendezvous {
    /// Returns when all ranks have called it as often as this one: whether any of them was asked to
    /// `stop`. All ranks get the same answer, so they stop at the same step.
    ///
    /// # Errors
    /// [`WorkloadError::Io`] when the other ranks are gone.
    fn meet(&mut self, stop: bool) -> Result<bool, WorkloadError>;
}

/// A run of one process.
pub(super) struct Alone;

impl Rendezvous for Alone {
    fn meet(&mut self, stop: bool) -> Result<bool, WorkloadError> {
        Ok(stop)
    }
}

/// A rank's end of the socket.
pub(super) struct Peers(UnixStream);

impl Peers {
    /// Takes the socket that [`launch`] put at stdin.
    ///
    /// # Errors
    /// [`WorkloadError::Io`] if stdin cannot be duplicated.
    pub(super) fn from_stdin() -> Result<Self, WorkloadError> {
        let fd: OwnedFd = rustix::io::dup(io::stdin())
            .map_err(|e| WorkloadError::io("rank's stdin", e.into()))?;
        Ok(Self(UnixStream::from(fd)))
    }
}

impl Rendezvous for Peers {
    fn meet(&mut self, stop: bool) -> Result<bool, WorkloadError> {
        let mut byte = [u8::from(stop)];
        (self.0.write_all(&byte))
            .and_then(|()| self.0.read_exact(&mut byte))
            .map_err(|e| WorkloadError::io("other ranks are gone", e))?;
        Ok(byte[0] != 0)
    }
}

struct Rank {
    child: Child,
    socket: UnixStream,
}

/// Starts this program once per rank with the same arguments, and serves until all have ended.
///
/// `stop` is this process's own request to stop.
///
/// # Errors
/// [`WorkloadError::Rank`] with the first failed rank's exit code, after the others were ended.
pub(super) fn launch(count: u32, stop: &AtomicBool) -> Result<(), WorkloadError> {
    let program = std::env::current_exe().map_err(|e| WorkloadError::io("own program", e))?;
    let mut ranks = Vec::new();
    for rank in 0..count {
        let (ours, theirs) =
            UnixStream::pair().map_err(|e| WorkloadError::io("rank's socket", e))?;
        let child = Command::new(&program)
            .args(std::env::args_os().skip(1))
            .arg("--rank")
            .arg(rank.to_string())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .map_err(|e| WorkloadError::io("start of a rank", e))?;
        ranks.push(Rank {
            child,
            socket: ours,
        });
    }
    while serve_meeting(&mut ranks, stop) {}
    reap(ranks)
}

/// Collects a byte of each rank and answers all. False once a rank is done or dead.
fn serve_meeting(ranks: &mut [Rank], stop: &AtomicBool) -> bool {
    let mut any = u8::from(stop.load(Ordering::Relaxed));
    for rank in &mut *ranks {
        let mut byte = [0];
        if rank.socket.read_exact(&mut byte).is_err() {
            return false;
        }
        any |= byte[0];
    }
    ranks
        .iter_mut()
        .all(|rank| rank.socket.write_all(&[any]).is_ok())
}

/// Ranks leave the loop together or because one failed: then its closed socket ends the others.
fn reap(ranks: Vec<Rank>) -> Result<(), WorkloadError> {
    let mut failure = None;
    let mut children = Vec::new();
    for rank in ranks {
        // Unblocks a rank that waits at a meeting that will not take place.
        drop(rank.socket);
        children.push(rank.child);
    }
    for (rank, mut child) in (0..).zip(children) {
        let status = child
            .wait()
            .map_err(|e| WorkloadError::io("wait for a rank", e))?;
        let code = exit_code(status);
        // A rank that lost its peers (74) is a consequence; the cause is another rank's code.
        if code != 0 && failure.is_none_or(|(_, first)| first == LOST_PEERS) {
            failure = Some((rank, code));
        }
    }
    match failure {
        None => Ok(()),
        Some((rank, code)) => Err(WorkloadError::Rank { rank, code }),
    }
}

/// [`WorkloadError::Io`]'s exit code.
const LOST_PEERS: u8 = 74;

fn exit_code(status: ExitStatus) -> u8 {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 255,
    };
    u8::try_from(code).unwrap_or(255)
}
