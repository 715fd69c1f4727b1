//! What the kernel tells about processes of jobs.

use tracing::{debug, info, warn};

use super::Owner;
use crate::telemetry::{Exited, LifecycleEvent, Sender};

impl Owner {
    pub(super) fn on_lifecycle(&mut self, event: LifecycleEvent) {
        match event {
            LifecycleEvent::Exited(exited) => self.on_exited(&exited),
            LifecycleEvent::Lost { total } => {
                warn!(total, "events of processes were lost; looking in /proc");
                self.keepers.resync();
            }
            event => debug!(?event, "process"),
        }
    }

    /// Says who ended a process from outside its job. That it is gone is told by its pidfd, once
    /// the driver has taken its memory back.
    fn on_exited(&self, exited: &Exited) {
        let (job, pid) = (exited.attempt.0, exited.process.pid);
        let command = exited.command.as_str();
        if exited.out_of_memory {
            warn!(%job, pid, command, "ended by the kernel: the machine's memory ran out");
            return;
        }
        match exited.sender {
            Some(Sender::Process { pid: sender, uid }) if !self.is_own(exited, sender) => {
                info!(%job, pid, command, exit = ?exited.exit, sender, uid, "ended by a signal from outside its job");
            }
            _ => debug!(?exited, "process"),
        }
    }

    /// The signal came from the daemon or from a process of the same attempt, its keeper included.
    fn is_own(&self, exited: &Exited, sender: u32) -> bool {
        sender == std::process::id() || self.keepers.belongs(sender) == Some(exited.attempt)
    }
}
