//! A keeper's life up to the fork: listen, claim, fork.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::time::Instant;

use aegis_common::id::ProcessKey;
use aegis_common::job::Exit;
use rustix::fs::{AtFlags, Mode};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Resource, getpid, getrlimit, setrlimit, umask};

use super::super::control::{self, Command, Report};
use super::super::layout::{Layout, socket_name};
use super::super::record::now;
use super::claim::{ClaimError, claim, daemon_lives};
use super::serve::{FIRST_RETRY, Keeper, SLOWEST_RETRY, timespec};
use super::{Order, child, layout, number, own_key};
use crate::sys::process;

/// The keeper's place in the kernel's order of victims when memory runs out (-1000 to 1000): its
/// death would end the job.
const OOM_SCORE_ADJUSTMENT: &str = "-900";

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
        saving: None,
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
    key: ProcessKey,
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
                && matches!(
                    packet.message,
                    Ok(Command::Stop { .. } | Command::Suspend { .. })
                )
            {
                return Err(error);
            }
        }
        delay = (delay * 2).min(SLOWEST_RETRY);
    }
}

impl Keeper {
    /// Forks the command. What the keeper changes about itself afterwards is not the job's.
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
        // Also for the keeper alone. Not permitted in rootless mode.
        let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJUSTMENT);
        Ok(())
    }
}
