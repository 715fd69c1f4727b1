//! Starting a keeper process.

use std::io::{Seek, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use aegis_common::bytes::ByteString;
use aegis_common::id::ProcessKey;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::environment::{Additions, environment};
use super::keeper::{ORDER_VERSION, Order};
use super::keepers::{KeepersConfig, StartOrder};
use super::{control, tree};

/// A keeper that was just started.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) key: ProcessKey,
    pub(crate) pidfd: OwnedFd,
    /// The daemon's end of the control socket.
    pub(crate) control: OwnedFd,
}

/// Starts the keeper program and hands it the order.
pub(crate) fn spawn(config: &KeepersConfig, start: &StartOrder<'_>) -> std::io::Result<Spawned> {
    let order = serde_json::to_vec(&order(config, start))?;
    let mut file = std::fs::File::from(memfd_create("aegis-order", MemfdFlags::CLOEXEC)?);
    file.write_all(&order)?;
    file.rewind()?;
    let (control, keepers_end) = control::pair()?;
    let mut child = Command::new(&config.keeper_program)
        .arg("keeper")
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(file))
        .stdout(Stdio::from(keepers_end))
        .stderr(Stdio::null())
        .spawn()?;
    match name(child.id()) {
        Ok((key, pidfd)) => Ok(Spawned {
            key,
            pidfd,
            control,
        }),
        Err(error) => {
            // Unwatched it must not run what is reported as not started.
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}

/// Identifies a child that is not waited for yet, so that its pid cannot belong to anybody else.
fn name(pid: u32) -> std::io::Result<(ProcessKey, OwnedFd)> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let raw = raw.ok_or_else(|| std::io::Error::other("no pid"))?;
    let pidfd = pidfd_open(raw, PidfdFlags::empty())?;
    let key = tree::identify(pid).ok_or_else(|| std::io::Error::other("/proc cannot be read"))?;
    Ok((key, pidfd))
}

fn order(config: &KeepersConfig, start: &StartOrder<'_>) -> Order {
    let record = start.record;
    let additions = Additions {
        job: start.job,
        attempt: start.attempt,
        resumed: start.resumed,
        token: &record.token,
        gpu_uuids: start.gpu_uuids,
        shim_socket: &config.shim_socket,
        shim_library: usable_shim(&config.shim_library),
    };
    Order {
        version: ORDER_VERSION,
        job: start.job,
        attempt: start.attempt,
        uid: record.uid,
        gid: record.gid,
        groups: record.groups.clone(),
        argv: record.launch.argv.clone(),
        cwd: record.launch.cwd.clone(),
        env: environment(&record.launch.env, &additions),
        umask: record.launch.umask,
        gpus: start.gpus.to_vec(),
        token: record.token,
        state_dir: path(&config.state_dir),
        runtime_dir: path(&config.runtime_dir),
        grace_ms: u64::try_from(config.grace.as_millis()).unwrap_or(u64::MAX),
        rootless: config.rootless,
        daemon: std::process::id(),
    }
}

/// The loader complains on the job's standard error about a library it cannot find, and splits
/// LD_PRELOAD at spaces and colons.
fn usable_shim(library: &Path) -> Option<&Path> {
    let unusable = |byte: &u8| matches!(byte, b' ' | b':' | b'\n');
    let problem = if path(library).0.iter().any(unusable) {
        "its path has a space or colon"
    } else if !library.is_file() {
        "there is no such file"
    } else {
        return Some(library);
    };
    tracing::warn!(
        "the job runs without the shim {}: {problem}",
        library.display()
    );
    None
}

fn path(path: &Path) -> ByteString {
    ByteString::from(path.as_os_str().to_owned())
}
