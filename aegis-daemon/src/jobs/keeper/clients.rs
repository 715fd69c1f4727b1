//! Answering the daemon.

use std::io;
use std::time::Duration;

use rustix::net::{SocketFlags, accept_with, sockopt::socket_peercred};

use super::super::control::{self, Command, KEEPER_PROTOCOL, KeeperPhase, Report};
use super::serve::{FIRST_RETRY, Keeper};
use super::suspending::Suspending;

/// Connections served at once. Only the daemon and root may connect.
const MAX_CLIENTS: usize = 16;
/// Descriptors held for one job: one ledger per CUDA process.
const MAX_HELD: usize = 4096;

impl Keeper {
    /// Lets in whoever may command a keeper: root and the daemon's user.
    pub(super) fn accept(&mut self) {
        loop {
            let client = match accept_with(&self.listener, SocketFlags::CLOEXEC) {
                Ok(client) => client,
                Err(rustix::io::Errno::AGAIN) => return,
                // Out of descriptors: the connection stays queued, so do not spin on it.
                Err(_) => return std::thread::sleep(FIRST_RETRY),
            };
            let own = rustix::process::geteuid();
            let allowed =
                socket_peercred(&client).is_ok_and(|peer| peer.uid.is_root() || peer.uid == own);
            if allowed && self.clients.len() < MAX_CLIENTS {
                self.clients.push(client);
            }
        }
    }

    /// Answers what has arrived from a client; drops it when it is gone.
    pub(super) fn serve_client(&mut self, place: usize) {
        let Some(client) = self.clients.get(place) else {
            return;
        };
        let packet = match control::receive::<Command>(client) {
            Ok(Some(packet)) => packet,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Ok(None) | Err(_) => {
                self.clients.swap_remove(place);
                return;
            }
        };
        let answer = match (packet.message, packet.descriptor) {
            (Ok(Command::Hello { .. }), _) => Some(Report::Hello {
                protocol: KEEPER_PROTOCOL,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            }),
            (Ok(Command::Stop { grace_ms }), _) => {
                self.stop(Duration::from_millis(grace_ms));
                None
            }
            (
                Ok(Command::Suspend {
                    signal,
                    save_ms,
                    grace_ms,
                }),
                _,
            ) => {
                self.suspend(Suspending {
                    signal,
                    save: Duration::from_millis(save_ms),
                    grace: Duration::from_millis(grace_ms),
                });
                None
            }
            (Ok(Command::Hold { name }), Some(descriptor)) => {
                if self.held.len() < MAX_HELD || self.held.contains_key(&name) {
                    self.held.insert(name, descriptor);
                    None
                } else {
                    let error = format!("{MAX_HELD} descriptors are held already");
                    Some(Report::Unsupported { error })
                }
            }
            (Ok(Command::Hold { .. }), None) => Some(Report::Unsupported {
                error: "hold needs a descriptor".to_owned(),
            }),
            (Ok(Command::Release { name }), _) => {
                self.held.remove(&name);
                None
            }
            (Ok(Command::Status), _) => Some(self.status()),
            (Err(error), _) => Some(Report::Unsupported { error }),
        };
        if let (Some(answer), Some(client)) = (answer, self.clients.get(place)) {
            let _ = control::send(client, &answer, None);
        }
    }

    fn status(&self) -> Report {
        Report::Status {
            phase: match (&self.end, &self.ending, &self.report) {
                (Some(_), _, _) => KeeperPhase::Ended,
                (None, Some(_), _) => KeeperPhase::Ending,
                (None, None, Some(_)) => KeeperPhase::Starting,
                (None, None, None) => KeeperPhase::Running,
            },
            exit: self.main_end.map(|(exit, _)| exit),
            held: self.held.keys().cloned().collect(),
        }
    }
}
