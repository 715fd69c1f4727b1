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

/// Starts this program once per rank with the same arguments, and serves until all have ended.
///
/// `stop` is this process's own request to stop.
///
/// # Errors
/// [`WorkloadError::Rank`] with the first failed rank's exit code, after the others were ended.
pub(super) fn launch(count: u32, stop: &AtomicBool) -> Result<(), WorkloadError> {
    let program = std::env::current_exe().map_err(|e| WorkloadError::io("own program", e))?;
    let (mut children, mut sockets) = (Vec::new(), Vec::new());
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
        children.push(child);
        sockets.push(ours);
    }
    while serve_meeting(&mut sockets, stop) {}
    // Unblocks the ranks that wait at a meeting that will not take place.
    drop(sockets);
    reap(children)
}

/// Collects a byte of each rank and answers all. False once a rank is done or dead.
fn serve_meeting(sockets: &mut [UnixStream], stop: &AtomicBool) -> bool {
    let mut any = u8::from(stop.load(Ordering::Relaxed));
    for socket in &mut *sockets {
        let mut byte = [0];
        if socket.read_exact(&mut byte).is_err() {
            return false;
        }
        any |= byte[0];
    }
    sockets
        .iter_mut()
        .all(|socket| socket.write_all(&[any]).is_ok())
}

/// Waits for all ranks; the first failure that is not a consequence of another's is the result.
fn reap(children: Vec<Child>) -> Result<(), WorkloadError> {
    let mut failure = None;
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn pair() -> (UnixStream, Peers) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (ours, Peers(theirs))
    }

    #[test]
    fn one_ranks_stop_request_reaches_all_at_the_same_meeting() {
        let (a, mut first) = pair();
        let (b, mut second) = pair();
        let ranks = thread::spawn(move || {
            thread::scope(|scope| {
                let first =
                    scope.spawn(|| [first.meet(false), first.meet(false)].map(Result::unwrap));
                let second =
                    scope.spawn(|| [second.meet(false), second.meet(true)].map(Result::unwrap));
                (first.join().unwrap(), second.join().unwrap())
            })
        });
        let never = AtomicBool::new(false);
        let mut sockets = [a, b];
        assert!(serve_meeting(&mut sockets, &never));
        assert!(serve_meeting(&mut sockets, &never));
        assert_eq!(ranks.join().unwrap(), ([false, true], [false, true]));
    }

    #[test]
    fn a_dead_rank_ends_the_meeting_for_the_others() {
        let (a, first) = pair();
        let (b, mut second) = pair();
        drop(first);
        let waits = thread::spawn(move || second.meet(false));
        let mut sockets = vec![a, b];
        assert!(!serve_meeting(&mut sockets, &AtomicBool::new(false)));
        drop(sockets);
        let error = waits.join().unwrap().unwrap_err();
        assert_eq!(error.exit_code(), LOST_PEERS);
    }
}
