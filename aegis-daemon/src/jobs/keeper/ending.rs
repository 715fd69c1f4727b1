//! Ending the tree: SIGTERM to all, SIGKILL after the grace period until nobody is left.

use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid};

use super::super::tree::{self, Process};
use super::number;

/// Until the next look at a tree that is being killed; doubles up to [`SLOWEST`]. A process may take
/// seconds to die in a driver, and a new child may have slipped through.
const FASTEST: Duration = Duration::from_millis(2);
/// See [`FASTEST`].
const SLOWEST: Duration = Duration::from_millis(250);

/// A longer grace period is cut to this one.
const LONGEST_GRACE: Duration = Duration::from_secs(24 * 3600);

/// A tree being ended.
#[derive(Debug)]
pub(super) struct Ending {
    deadline: Instant,
    /// Killing has begun; the time of the next pass and what to wait after it.
    killing: Option<(Instant, Duration)>,
}

impl Ending {
    /// Asks everybody to end, stopped processes too.
    pub(super) fn begin(now: Instant, grace: Duration) -> Self {
        for process in descendants().unwrap_or_default() {
            if !process.zombie {
                // One that is gone needs none; one that may not be signalled is dealt with below.
                let _ = tree::signal(process.key, Signal::TERM);
                let _ = tree::signal(process.key, Signal::CONT);
            }
        }
        Self {
            deadline: now + grace.min(LONGEST_GRACE),
            killing: None,
        }
    }

    /// A second request may only shorten the grace.
    pub(super) fn hasten(&mut self, now: Instant, grace: Duration) {
        self.deadline = self.deadline.min(now + grace.min(LONGEST_GRACE));
    }

    /// Does what is due.
    pub(super) fn advance(&mut self, now: Instant) {
        let (due, delay) = self.killing.unwrap_or((self.deadline, FASTEST));
        if now >= due {
            tree::freeze_and_kill(descendants);
            self.killing = Some((Instant::now() + delay, (delay * 2).min(SLOWEST)));
        }
    }

    /// When [`Self::advance`] has something to do.
    pub(super) fn due(&self) -> Instant {
        self.killing.map_or(self.deadline, |(due, _)| due)
    }
}

/// Everybody below the keeper. Orphans are its children: it is their subreaper.
fn descendants() -> io::Result<Vec<Process>> {
    Ok(tree::descendants(&tree::list()?, &[number(getpid())]))
}
