//! A keeper's life after the fork: wait for processes, time and the daemon, until all is over.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use aegis_common::id::{Moment, ProcessKey};
use aegis_common::job::Exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::AtFlags;
use rustix::process::{Pid, WaitOptions, wait};

use super::super::control::{self, Report};
use super::super::layout::Layout;
use super::super::record::{EndRecord, now};
use super::super::tree;
use super::ending::Ending;
use super::{Order, number};
use crate::sys::process;

/// Between two tries to get what the system is out of (disk space, descriptors); doubles up to
/// [`SLOWEST_RETRY`].
pub(super) const FIRST_RETRY: Duration = Duration::from_millis(50);
/// See [`FIRST_RETRY`].
pub(super) const SLOWEST_RETRY: Duration = Duration::from_secs(5);

/// A keeper whose command was forked.
#[derive(Debug)]
pub(super) struct Keeper {
    pub(super) order: Order,
    pub(super) layout: Layout,
    pub(super) sockets: OwnedFd,
    pub(super) socket: String,
    pub(super) listener: OwnedFd,
    pub(super) clients: Vec<OwnedFd>,
    pub(super) signals: OwnedFd,
    pub(super) held: BTreeMap<String, OwnedFd>,
    pub(super) main: Pid,
    /// Says why the command could not be executed; ends without a word when it was.
    pub(super) report: Option<File>,
    pub(super) start_error: Vec<u8>,
    pub(super) main_end: Option<(Exit, Moment)>,
    /// When the time to save ends, and the grace after it, while the main process saves.
    pub(super) saving: Option<(Instant, Duration)>,
    pub(super) ending: Option<Ending>,
    /// Nobody is left.
    pub(super) empty: bool,
    /// The end record, once there is one, and when to try (again) to write it.
    pub(super) end: Option<(EndRecord, Instant, Duration)>,
}

impl Keeper {
    /// Serves until the end record is on disk. Returns the exit status.
    pub(super) fn serve(mut self) -> i32 {
        let record = loop {
            self.advance();
            if let Some(record) = self.try_to_record() {
                break record;
            }
            self.wait();
        };
        let _ = rustix::fs::unlinkat(&self.sockets, &self.socket, AtFlags::empty());
        // A daemon that hears it puts it into its journal: only without one does the end depend
        // on the record's way to the disk.
        for client in &self.clients {
            let _ = control::send(client, &Report::Ended, None);
        }
        self.sync(record);
        super::DONE
    }

    /// Does what time and ended processes ask for.
    fn advance(&mut self) {
        self.reap();
        let now = Instant::now();
        if let Some((deadline, grace)) = self.saving
            && now >= deadline
        {
            self.stop(grace);
        }
        if self.main_end.is_some() && !self.empty && self.ending.is_none() {
            self.ending = Some(Ending::begin(
                now,
                Duration::from_millis(self.order.grace_ms),
            ));
        }
        if !self.empty
            && let Some(ending) = &mut self.ending
        {
            ending.advance(now);
        }
        if self.empty && self.end.is_none() {
            self.end = Some((self.end_record(), now, FIRST_RETRY));
        }
    }

    /// Waits for all children that have ended. No child at all means nobody is left: whoever
    /// loses its parent becomes the keeper's child.
    fn reap(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main && self.main_end.is_none() => {
                    let exit = match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => Exit::Code(code),
                        (None, Some(signal)) => Exit::Signal(signal),
                        (None, None) => Exit::Unknown,
                    };
                    self.main_end = Some((exit, now()));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return,
                Err(_) => {
                    self.empty = true;
                    return;
                }
            }
        }
    }

    /// Waits for the next thing to do and takes in what happened.
    fn wait(&mut self) {
        let due = match (&self.end, &self.ending) {
            (Some((_, due, _)), _) => Some(*due),
            (None, Some(ending)) => Some(ending.due()),
            (None, None) => self.saving.map(|(deadline, _)| deadline),
        };
        let timeout = due.map(|due| timespec(due.saturating_duration_since(Instant::now())));
        let ready: Vec<bool> = {
            let fds = [self.signals.as_fd(), self.listener.as_fd()].into_iter();
            let fds = fds.chain(self.clients.iter().map(AsFd::as_fd));
            let fds = fds.chain(self.report.iter().map(AsFd::as_fd));
            let mut fds: Vec<PollFd<'_>> = fds
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .collect();
            if poll(&mut fds, timeout.as_ref()).is_err() {
                return;
            }
            fds.iter().map(|fd| !fd.revents().is_empty()).collect()
        };
        let is_ready = |place: usize| ready.get(place).copied().unwrap_or(false);
        let clients = self.clients.len();
        if is_ready(2 + clients) {
            self.read_report();
        }
        for place in (0..clients).rev() {
            if is_ready(2 + place) {
                self.serve_client(place);
            }
        }
        if is_ready(1) {
            self.accept();
        }
        if is_ready(0) {
            let signals = process::read_signals(&self.signals).unwrap_or_default();
            // A service manager that ends the keeper ends the job, in order.
            if signals.contains(&libc::SIGTERM) {
                self.stop(Duration::from_millis(self.order.grace_ms));
            }
        }
    }

    /// Reads the child's report to its end, which comes with its exec or its exit.
    pub(super) fn read_report(&mut self) {
        let Some(mut report) = self.report.take() else {
            return;
        };
        let _ = report.read_to_end(&mut self.start_error);
        if self.start_error.is_empty() {
            let main = number(self.main);
            let main = tree::identify(main).unwrap_or(ProcessKey {
                pid: main,
                start_ticks: 0,
            });
            for client in &self.clients {
                let _ = control::send(client, &Report::Running { main }, None);
            }
        }
    }

    /// Ends the tree; a further request may only shorten the grace.
    pub(super) fn stop(&mut self, grace: Duration) {
        let now = Instant::now();
        self.saving = None;
        match &mut self.ending {
            Some(ending) => ending.hasten(now, grace),
            None => self.ending = Some(Ending::begin(now, grace)),
        }
    }
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(Timespec {
        tv_sec: i64::MAX,
        tv_nsec: 0,
    })
}
