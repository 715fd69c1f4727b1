//! The keeper: one exec'd, single-threaded process per attempt, between the daemon and the job.
//!
//! It outlives the daemon. It decides by creating the start record whether the command runs (of
//! any number of keepers for one attempt exactly one wins), runs it as its user, keeps every
//! descendant in its tree (subreaper), ends what is left when the command has ended or a stop is
//! asked for, and writes how it ended. If the keeper is killed, so is the job.
//!
//! Started by the daemon as `aegisd keeper` with the order as standard input (1 MB of arguments and
//! secrets do not belong on a command line) and a control socket as standard output.

mod child;
mod claim;
mod clients;
mod ending;
mod exec;
mod finish;
mod order;
mod prepare;
mod serve;
mod suspending;

use std::ffi::{CString, OsString};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, getpid, set_child_subreaper, setsid, umask};

use super::control::{self, Report};
use super::layout::Layout;
use super::tree;
use crate::sys::process;
pub(crate) use order::{ORDER_VERSION, Order};

/// Exit status: the attempt was served to its end.
const DONE: i32 = 0;
/// Exit status: nothing was started; the control socket said why.
const REFUSED: i32 = 1;
/// Exit status: not started by a daemon.
const USAGE: i32 = 2;

/// Runs a keeper to its end and returns its exit status. `arguments` are those after `keeper`.
///
/// Call it first thing in `main`: it closes inherited descriptors and needs a process with one
/// thread.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    if arguments.into_iter().next().is_some() {
        return usage("it takes no arguments");
    }
    match setup() {
        Ok((order, control)) => match prepare::prepare(&order, &control) {
            Ok(Some(keeper)) => keeper.serve(),
            // Another keeper runs it.
            Ok(None) => {
                let _ = control::send(&control, &Report::Beaten, None);
                DONE
            }
            Err(error) => {
                let _ = control::send(&control, &Report::Refused { error }, None);
                REFUSED
            }
        },
        Err(error) => usage(&error),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "whoever starts it by hand has nothing else to read"
)]
fn usage(problem: &str) -> i32 {
    eprintln!("aegisd keeper: started by aegisd only, not by hand: {problem}");
    USAGE
}

/// Takes over order and control socket and leaves standard input, output and error empty.
fn setup() -> Result<(Order, OwnedFd), String> {
    let text = |what: &str| {
        let what = what.to_owned();
        move |error: std::io::Error| format!("{what}: {error}")
    };
    process::close_inherited().map_err(text("closing inherited descriptors"))?;
    let control = rustix::io::fcntl_dupfd_cloexec(std::io::stdout().as_fd(), 3)
        .map_err(|error| format!("standard output: {error}"))?;
    rustix::net::sockopt::socket_peercred(&control)
        .map_err(|error| format!("standard output is no socket: {error}"))?;
    let mut order = Vec::new();
    std::io::stdin()
        .read_to_end(&mut order)
        .map_err(text("reading the order"))?;
    let order: Order =
        serde_json::from_slice(&order).map_err(|error| format!("the order: {error}"))?;
    if order.version != ORDER_VERSION {
        return Err(format!(
            "the order has version {}, this keeper knows {ORDER_VERSION}",
            order.version
        ));
    }
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| format!("/dev/null: {error}"))?;
    rustix::stdio::dup2_stdin(&null)
        .and_then(|()| rustix::stdio::dup2_stdout(&null))
        .and_then(|()| rustix::stdio::dup2_stderr(&null))
        .map_err(|error| format!("/dev/null: {error}"))?;
    // Fails only for a process group's leader: then the session is already apart from the
    // daemon's, or a shell's, which is as good.
    let _ = setsid();
    umask(Mode::empty());
    rustix::process::chdir("/").map_err(|error| format!("/: {error}"))?;
    // What `ps` shows.
    if let Ok(name) = CString::new(format!("aegis-{}-{}", order.job, order.attempt)) {
        let _ = rustix::thread::set_name(&name);
    }
    set_child_subreaper(Some(getpid())).map_err(|error| format!("subreaper: {error}"))?;
    Ok((order, control))
}

/// The number of a pid.
fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

/// The layout an order names.
fn layout(order: &Order) -> Layout {
    Layout::new(
        order.state_dir.as_os_str().as_ref(),
        order.runtime_dir.as_os_str().as_ref(),
    )
}

/// This keeper's identity.
fn own_key() -> Result<aegis_common::id::ProcessKey, String> {
    tree::identify(number(getpid())).ok_or_else(|| "/proc/self/stat cannot be read".to_owned())
}
