//! Between fork and exec: becoming the user, then everything that must happen as the user.

use std::convert::Infallible;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::process::{
    Pid, Signal, chdir, getegid, geteuid, getppid, set_parent_process_death_signal, setsid, umask,
};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::super::layout::LOG;
use super::{Order, exec, number};
use crate::sys::process;

/// Runs the command in this (forked) process. Returns the exit status for the case that it could
/// not be run; `report` then holds the reason.
pub(super) fn run(order: &Order, output: &OwnedFd, report: OwnedFd, keeper: Pid) -> i32 {
    let Err(error) = become_job(order, output.as_fd(), keeper);
    let _ = std::fs::File::from(report).write_all(error.as_bytes());
    127
}

fn become_job(order: &Order, output: BorrowedFd<'_>, keeper: Pid) -> Result<Infallible, String> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: rustix::io::Errno| format!("{what}: {error}")
    };
    setsid().map_err(failed("a new session"))?;
    if order.rootless {
        if geteuid().as_raw() != order.uid {
            return Err(wrong_user(order.uid));
        }
    } else {
        let groups: Vec<Gid> = order.groups.iter().copied().map(Gid::from_raw).collect();
        let (uid, gid) = (Uid::from_raw(order.uid), Gid::from_raw(order.gid));
        set_thread_groups(&groups).map_err(failed("the job's supplementary groups"))?;
        set_thread_res_gid(gid, gid, gid).map_err(failed(&format!("gid {}", order.gid)))?;
        set_thread_res_uid(uid, uid, uid).map_err(failed(&format!("uid {}", order.uid)))?;
        if geteuid() != uid || getegid() != gid {
            return Err(format!("uid {} did not take effect", order.uid));
        }
    }
    umask(Mode::from_raw_mode(order.umask & 0o777));
    // A change of credentials clears it: only now.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed("the death signal"))?;
    if getppid() != Some(keeper) {
        return Err(format!("keeper {} is gone", number(keeper)));
    }
    chdir(order.cwd.as_os_str())
        .map_err(failed(&format!("working directory {}", order.cwd.lossy())))?;
    let flags =
        OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let log = rustix::fs::openat(output, LOG, flags, Mode::RUSR | Mode::WUSR)
        .map_err(failed(&format!("the log {LOG}")))?;
    // Standard input is /dev/null since the keeper's start.
    rustix::stdio::dup2_stdout(&log).map_err(failed("standard output"))?;
    rustix::stdio::dup2_stderr(&log).map_err(failed("standard error"))?;
    process::reset_signals().map_err(|error| format!("signals: {error}"))?;
    Err(exec::exec(&order.argv, &order.env))
}

/// The refusal of a rootless daemon to act for somebody else.
pub(super) fn wrong_user(uid: u32) -> String {
    format!(
        "a rootless aegisd of uid {} cannot run a job of uid {uid}",
        geteuid().as_raw()
    )
}
