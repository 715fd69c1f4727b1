//! Suspending: the main process is asked to save its state and exit, and given time.

use std::time::{Duration, Instant};

use super::serve::Keeper;
use crate::sys::process;

/// A longer time to save is cut to this one.
const LONGEST_SAVE: Duration = Duration::from_secs(24 * 3600);

/// How the daemon wants it done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspending {
    /// The signal the job declared.
    pub(super) signal: i32,
    /// Time to save and exit.
    pub(super) save: Duration,
    /// Between SIGTERM and SIGKILL after that.
    pub(super) grace: Duration,
}

impl Keeper {
    /// Sends the signal once, to the main process alone: what it started is its own business, and a
    /// launcher's ranks would save twice. A tree that is being ended already is ended.
    pub(super) fn suspend(&mut self, how: Suspending) {
        if self.saving.is_some() || self.ending.is_some() || self.main_end.is_some() {
            return;
        }
        // The pid is its own: it was not waited for yet.
        if process::signal(self.main, how.signal).is_err() {
            // It cannot be asked.
            return self.stop(how.grace);
        }
        // One that is stopped hears it now.
        let _ = process::signal(self.main, libc::SIGCONT);
        self.saving = Some((Instant::now() + how.save.min(LONGEST_SAVE), how.grace));
    }
}
