//! Watching one keeper from the daemon until its attempt has ended.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use aegis_common::action::StopHow;
use aegis_common::id::{JobId, ProcessKey};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use super::adopt;
use super::control::{self, Command, KEEPER_PROTOCOL, Report};
use super::followed;
use super::keepers::{KeeperEvent, KeepersConfig, SharedKey};
use super::layout::Layout;
use super::record::StartRecord;
use super::spawn::Spawned;
use crate::sys::reactor;
use crate::telemetry::Lifecycle;

/// Between two tries while the system refuses (out of descriptors, I/O error).
pub(super) const READ_AGAIN: Duration = Duration::from_secs(1);

/// What the owner asks for.
#[derive(Debug)]
pub(crate) enum Request {
    Stop(StopHow),
    Hold { name: String, descriptor: OwnedFd },
    Release { name: String },
}

/// How the daemon came to watch the attempt.
#[derive(Debug)]
pub(crate) enum Origin {
    /// It has just started a keeper.
    Spawned(Spawned),
    /// A keeper of an earlier daemon lives; its start is known to the owner.
    Adopted { record: StartRecord, pidfd: OwnedFd },
    /// The keeper is gone, processes of the job are not; its start is known to the owner.
    Orphans,
}

/// Watches one attempt.
#[derive(Debug)]
pub(crate) struct Supervisor {
    pub(crate) config: Arc<KeepersConfig>,
    pub(crate) layout: Layout,
    pub(crate) events: mpsc::UnboundedSender<KeeperEvent>,
    pub(crate) job: JobId,
    pub(crate) attempt: u32,
    pub(crate) token: [u8; 32],
    pub(crate) keeper: SharedKey,
    /// Follows the attempt's processes, if anything does.
    pub(crate) lifecycle: Option<Lifecycle>,
    pub(crate) requests: mpsc::UnboundedReceiver<Request>,
    /// The owner knows that the attempt has started.
    pub(crate) started: bool,
    /// The keeper was asked to suspend; it has not yet been asked to stop.
    pub(crate) suspending: bool,
}

/// What became of a keeper.
enum Gone {
    /// It has ended; the records tell the rest.
    Ended,
    /// It made no start record, for this reason.
    Refused(String),
    /// Another keeper runs the attempt.
    Beaten,
    /// Nobody wants to know any more: the keeper goes on by itself.
    Unwatched,
    /// It has ended, and the owner knows already how.
    Reported,
}

impl Supervisor {
    /// Watches until the attempt has ended and reports what happens.
    pub(crate) async fn run(mut self, origin: Origin) {
        let mut gone = match origin {
            Origin::Spawned(spawned) => self.watch(spawned.pidfd, Some(spawned.control)).await,
            Origin::Adopted { record, pidfd } => {
                self.started = true;
                self.attach(&record, pidfd).await
            }
            Origin::Orphans => {
                self.started = true;
                Gone::Ended
            }
        };
        loop {
            gone = match gone {
                Gone::Refused(error) => return self.report_start_failed(error),
                Gone::Ended => return self.conclude().await,
                Gone::Unwatched | Gone::Reported => return,
                Gone::Beaten => match self.start_record().await {
                    Some(record) => {
                        self.report_started(&record);
                        match adopt::keeper_of(&record) {
                            Some(pidfd) => self.attach(&record, pidfd).await,
                            None => Gone::Ended,
                        }
                    }
                    None => Gone::Ended,
                },
            };
        }
    }

    /// Watches a keeper this daemon did not start.
    async fn attach(&mut self, record: &StartRecord, pidfd: OwnedFd) -> Gone {
        self.set_keeper(Some(record.keeper));
        let control = control::open_directory(&self.layout.keepers)
            .and_then(|directory| control::connect(&directory, &record.socket));
        let control = match control {
            Ok(control) => {
                let protocol = KEEPER_PROTOCOL;
                let _ = control::send(&control, &Command::Hello { protocol }, None);
                Some(control)
            }
            Err(error) => {
                tracing::warn!(
                    "job {}: the keeper's socket {}: {error}; it can only be stopped by signal",
                    self.job,
                    record.socket
                );
                None
            }
        };
        self.watch(pidfd, control).await
    }

    /// Waits for the keeper's end, passing requests on.
    async fn watch(&mut self, pidfd: OwnedFd, control: Option<OwnedFd>) -> Gone {
        let pidfd = register(pidfd).await;
        let mut control = match control {
            Some(control) => Some(register(control).await),
            None => None,
        };
        let mut outcome = Gone::Ended;
        loop {
            tokio::select! {
                biased;
                message = next_report(control.as_ref()) => match message {
                    Some(Report::Refused { error }) => outcome = Gone::Refused(error),
                    Some(Report::Beaten) => outcome = Gone::Beaten,
                    Some(Report::Ended) => if self.conclude_recorded().await {
                        outcome = Gone::Reported;
                    },
                    // A keeper from before there was suspension: what it knows is a stop.
                    Some(Report::Unsupported { error })
                        if self.suspending && error.contains("suspend") =>
                    {
                        tracing::warn!(
                            "job {}: its keeper is older and cannot suspend it; it is stopped",
                            self.job
                        );
                        let stop = Request::Stop(StopHow::Terminate);
                        self.pass_on(stop, pidfd.get_ref(), control.as_ref());
                    }
                    Some(report) => self.heard(report).await,
                    None => control = None,
                },
                // The owner forgets an attempt that has ended; its keeper must be waited for.
                request = self.requests.recv(), if !matches!(outcome, Gone::Reported) => match request {
                    Some(request) => self.pass_on(request, pidfd.get_ref(), control.as_ref()),
                    None => return Gone::Unwatched,
                },
                _ = pidfd.readable() => {
                    // Takes the zombie away if the keeper is this daemon's child.
                    let id = WaitId::PidFd(pidfd.get_ref().as_fd());
                    let _ = waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
                    crate::failpoint::hit("keeper.gone");
                    self.set_keeper(None);
                    return outcome;
                }
            }
        }
    }

    async fn heard(&mut self, report: Report) {
        match report {
            Report::Running { .. } => {
                if let Some(record) = self.start_record().await {
                    self.report_started(&record);
                }
            }
            Report::Waiting { error } => {
                tracing::warn!("job {} waits for room to start: {error}", self.job);
            }
            Report::Unsupported { error } => {
                tracing::warn!("job {}: the keeper does not understand: {error}", self.job);
            }
            Report::Claimed => crate::failpoint::hit("keeper.claimed"),
            Report::Hello { .. }
            | Report::Status { .. }
            | Report::Refused { .. }
            | Report::Beaten
            | Report::Ended => {}
        }
    }

    fn pass_on(&mut self, request: Request, pidfd: &OwnedFd, control: Option<&AsyncFd<OwnedFd>>) {
        let is_stop = matches!(request, Request::Stop(_));
        let grace_ms = u64::try_from(self.config.grace.as_millis()).unwrap_or(u64::MAX);
        let (command, descriptor) = match request {
            Request::Stop(StopHow::Terminate) => {
                self.suspending = false;
                (Command::Stop { grace_ms }, None)
            }
            Request::Stop(StopHow::Suspend { on_suspend }) => {
                self.suspending = true;
                let suspend = Command::Suspend {
                    signal: on_suspend.signal,
                    save_ms: u64::from(on_suspend.grace_s) * 1000,
                    grace_ms,
                };
                (suspend, None)
            }
            Request::Hold { name, descriptor } => (Command::Hold { name }, Some(descriptor)),
            Request::Release { name } => (Command::Release { name }, None),
        };
        let sent = match control {
            Some(control) => {
                let descriptor = descriptor.as_ref().map(AsFd::as_fd);
                control::send(control.get_ref(), &command, descriptor)
            }
            None => Err(io::Error::from(io::ErrorKind::NotConnected)),
        };
        if is_stop {
            crate::failpoint::hit("keeper.stop_sent");
        }
        let Err(error) = sent else { return };
        if matches!(command, Command::Release { .. }) {
            // A keeper that has just ended has released everything.
            return;
        }
        tracing::warn!(
            "job {}: {command:?} did not reach its keeper: {error}",
            self.job
        );
        if is_stop {
            // To a keeper SIGTERM means the same.
            let _ = pidfd_send_signal(pidfd, Signal::TERM);
        }
    }

    fn set_keeper(&self, key: Option<ProcessKey>) {
        if let (Some(lifecycle), Some(key)) = (&self.lifecycle, key) {
            followed::follow_tree(lifecycle, (self.job, self.attempt), key);
        }
        *self.keeper.lock().unwrap_or_else(PoisonError::into_inner) = key;
    }
}

/// Registers with the reactor; tries again while it has no room.
async fn register(mut descriptor: OwnedFd) -> AsyncFd<OwnedFd> {
    loop {
        match reactor::register(descriptor) {
            Ok(registered) => return registered,
            Err((back, error)) => {
                tracing::error!("watching a keeper: {error}; trying again");
                descriptor = back;
                tokio::time::sleep(READ_AGAIN).await;
            }
        }
    }
}

/// The keeper's next report; `None` when its end of the socket is closed. Never ready without a
/// socket.
async fn next_report(control: Option<&AsyncFd<OwnedFd>>) -> Option<Report> {
    let Some(control) = control else {
        return std::future::pending().await;
    };
    loop {
        let mut ready = control.readable().await.ok()?;
        match ready.try_io(|socket| control::receive::<Report>(socket.get_ref())) {
            Err(_would_block) => {}
            Ok(Ok(Some(packet))) => match packet.message {
                Ok(report) => return Some(report),
                Err(error) => tracing::warn!("a report of a keeper: {error}"),
            },
            Ok(Ok(None) | Err(_)) => return None,
        }
    }
}
