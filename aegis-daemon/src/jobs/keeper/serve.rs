//! A keeper's life: claim, fork, wait, end the tree, write the end record.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use aegis_common::id::Moment;
use aegis_common::job::Exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Mode};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Resource, WaitOptions, getpid, getrlimit, setrlimit, umask, wait};

use super::super::control::{self, Command, KEEPER_PROTOCOL, KeeperPhase, Report};
use super::super::layout::{Layout, socket_name};
use super::super::record::{End, EndRecord, RECORD_VERSION, now};
use super::super::tree;
use super::claim::{ClaimError, claim, daemon_lives};
use super::ending::Ending;
use super::{Order, child, layout, number, own_key};
use crate::sys::process;

/// Connections served at once. Only the daemon and root may connect.
const MAX_CLIENTS: usize = 16;
/// Descriptors held for one job: one ledger per CUDA process.
const MAX_HELD: usize = 4096;
/// Between two tries to write to a full disk; doubles up to [`SLOWEST_RETRY`].
const FIRST_RETRY: Duration = Duration::from_millis(50);
/// See [`FIRST_RETRY`].
const SLOWEST_RETRY: Duration = Duration::from_secs(5);

/// A keeper whose command was forked.
#[derive(Debug)]
pub(super) struct Keeper {
    order: Order,
    layout: Layout,
    sockets: OwnedFd,
    socket: String,
    listener: OwnedFd,
    clients: Vec<OwnedFd>,
    signals: OwnedFd,
    held: BTreeMap<String, OwnedFd>,
    main: Pid,
    /// Says why the command could not be executed; ends without a word when it was.
    report: Option<File>,
    start_error: Vec<u8>,
    main_end: Option<(Exit, Moment)>,
    ending: Option<Ending>,
    /// Nobody is left.
    empty: bool,
    /// The end record, once there is one, and when to try (again) to write it.
    end: Option<(EndRecord, Instant, Duration)>,
}

/// Claims the attempt and forks its command. `None`: another keeper has it.
pub(super) fn prepare(order: &Order, control: &OwnedFd) -> Result<Option<Keeper>, String> {
    if order.rootless && rustix::process::geteuid().as_raw() != order.uid {
        return Err(child::wrong_user(order.uid));
    }
    let layout = layout(order);
    let key = own_key()?;
    let signals = process::signal_descriptor(&[
        libc::SIGCHLD,
        libc::SIGTERM,
        libc::SIGINT,
        libc::SIGHUP,
        libc::SIGQUIT,
    ])
    .map_err(|error| format!("signals: {error}"))?;
    let socket = socket_name(order.job, order.attempt, number(getpid()));
    let sockets = control::open_directory(&layout.keepers)
        .map_err(|error| format!("{}: {error}", layout.keepers.display()))?;
    let _ = rustix::fs::unlinkat(&sockets, &socket, AtFlags::empty());
    umask(Mode::from_raw_mode(0o177));
    let listener = control::listen(&sockets, &socket)
        .map_err(|error| format!("{}/{socket}: {error}", layout.keepers.display()))?;
    umask(Mode::empty());

    let output = match claim_patiently(order, &layout, key, &socket, control) {
        Ok(output) => output,
        Err(error) => {
            let _ = rustix::fs::unlinkat(&sockets, &socket, AtFlags::empty());
            return match error {
                ClaimError::Beaten => Ok(None),
                error => Err(error.to_string()),
            };
        }
    };
    let control = rustix::io::fcntl_dupfd_cloexec(control, 3);
    let control = control.map_err(|error| format!("the control socket: {error}"))?;
    let _ = control::send(&control, &Report::Claimed, None);
    let mut keeper = Keeper {
        order: order.clone(),
        layout,
        sockets,
        socket,
        listener,
        clients: vec![control],
        signals,
        held: BTreeMap::new(),
        main: getpid(),
        report: None,
        start_error: Vec::new(),
        main_end: None,
        ending: None,
        empty: false,
        end: None,
    };
    // From here on every failure has a record.
    if let Err(error) = keeper.fork(&output) {
        keeper.start_error = error.into_bytes();
        keeper.main_end = Some((Exit::Code(126), now()));
    }
    keeper.order.argv = Vec::new();
    keeper.order.env = Vec::new();
    Ok(Some(keeper))
}

/// A full disk delays the start; it does not fail the job.
fn claim_patiently(
    order: &Order,
    layout: &Layout,
    key: aegis_common::id::ProcessKey,
    socket: &str,
    control: &OwnedFd,
) -> Result<OwnedFd, ClaimError> {
    let mut delay = FIRST_RETRY;
    loop {
        let error = match claim(order, layout, key, socket, control) {
            Err(error) if error.is_full() => error,
            result => return result,
        };
        if delay == FIRST_RETRY {
            let error = error.to_string();
            let _ = control::send(control, &Report::Waiting { error }, None);
        }
        let until = Instant::now() + delay;
        while let Some(rest) = until.checked_duration_since(Instant::now()) {
            super::claim::wait(control, timespec(rest));
            if !daemon_lives(order, control) {
                return Err(ClaimError::Orphaned);
            }
            if let Ok(Some(packet)) = control::receive::<Command>(control)
                && matches!(packet.message, Ok(Command::Stop { .. }))
            {
                return Err(error);
            }
        }
        delay = (delay * 2).min(SLOWEST_RETRY);
    }
}

impl Keeper {
    fn fork(&mut self, output: &OwnedFd) -> Result<(), String> {
        let (read, write) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| format!("a pipe: {error}"))?;
        let keeper = getpid();
        let order = &self.order;
        let mut write = Some(write);
        self.main = process::fork(|| match write.take() {
            Some(write) => child::run(order, output, write, keeper),
            None => 126,
        })
        .map_err(|error| format!("fork: {error}"))?;
        drop(write);
        self.report = Some(File::from(read));
        // The job keeps the limits it inherits; a keeper holds a descriptor per CUDA process.
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, limit);
        Ok(())
    }

    /// Serves until the end record is on disk. Returns the exit status.
    pub(super) fn serve(mut self) -> i32 {
        loop {
            self.advance();
            if self.try_to_record() {
                break;
            }
            self.wait();
        }
        let _ = rustix::fs::unlinkat(&self.sockets, &self.socket, AtFlags::empty());
        super::DONE
    }

    /// Does what time and ended processes ask for.
    fn advance(&mut self) {
        self.reap();
        let now = Instant::now();
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

    fn end_record(&mut self) -> EndRecord {
        self.read_report();
        let (exit, main_ended) = self.main_end.unwrap_or((Exit::Unknown, now()));
        let usage = process::children_usage();
        EndRecord {
            version: RECORD_VERSION,
            job: self.order.job,
            attempt: self.order.attempt,
            end: if self.start_error.is_empty() {
                End::Exited { exit }
            } else {
                let error = String::from_utf8_lossy(&self.start_error).into_owned();
                End::StartFailed { error }
            },
            main_ended,
            ended: now(),
            user_ms: usage.user_ms,
            system_ms: usage.system_ms,
            max_rss_kib: usage.max_rss_kib,
        }
    }

    /// Writes the end record if it is due. A full disk is tried again as long as it takes; until
    /// then `status` has the answer.
    fn try_to_record(&mut self) -> bool {
        let Some((record, due, delay)) = &self.end else {
            return false;
        };
        if Instant::now() < *due {
            return false;
        }
        if self.write_record(record).is_ok() {
            return true;
        }
        let next = (Instant::now() + *delay, (*delay * 2).min(SLOWEST_RETRY));
        if let Some((_, due, delay)) = &mut self.end {
            (*due, *delay) = next;
        }
        false
    }

    fn write_record(&self, record: &EndRecord) -> io::Result<()> {
        let (job, attempt) = (self.order.job, self.order.attempt);
        let reserved = self.layout.reserved_end(job, attempt, number(getpid()));
        let bytes = serde_json::to_vec(record)?;
        // Not truncated first: that would give the reserved blocks away.
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&reserved)?;
        file.write_all(&bytes)?;
        file.set_len(u64::try_from(bytes.len()).unwrap_or(u64::MAX))?;
        file.sync_all()?;
        std::fs::rename(&reserved, self.layout.end_record(job, attempt))?;
        File::open(self.layout.job(job))?.sync_all()
    }

    /// Waits for the next thing to do and takes in what happened.
    fn wait(&mut self) {
        let due = match (&self.end, &self.ending) {
            (Some((_, due, _)), _) => Some(*due),
            (None, Some(ending)) => Some(ending.due()),
            (None, None) => None,
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
    fn read_report(&mut self) {
        let Some(mut report) = self.report.take() else {
            return;
        };
        let _ = report.read_to_end(&mut self.start_error);
        if self.start_error.is_empty() {
            let main = number(self.main);
            let main = tree::identify(main).unwrap_or(aegis_common::id::ProcessKey {
                pid: main,
                start_ticks: 0,
            });
            for client in &self.clients {
                let _ = control::send(client, &Report::Running { main }, None);
            }
        }
    }

    fn stop(&mut self, grace: Duration) {
        let now = Instant::now();
        match &mut self.ending {
            Some(ending) => ending.hasten(now, grace),
            None => self.ending = Some(Ending::begin(now, grace)),
        }
    }

    fn accept(&mut self) {
        use rustix::net::{SocketFlags, accept_with, sockopt::socket_peercred};
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
    fn serve_client(&mut self, place: usize) {
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

fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(Timespec {
        tv_sec: i64::MAX,
        tv_nsec: 0,
    })
}
