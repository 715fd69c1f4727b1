//! Starting the daemon: directories, sockets, threads, then the owner's loop.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::api::{BindError, Server};
use crate::config::Config;
use crate::config::paths::find_shim;
use crate::jobs::{Keepers, KeepersConfig};
use crate::lease::ShimServer;
use crate::owner::{Inputs, Loopback, Owner, RecoverError, Settings};
use crate::store::{Store, StoreError};
use crate::telemetry::{Lifecycle, Telemetry, TelemetryConfig, Unavailable};

/// Why the daemon cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client socket.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state as a whole.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// Another daemon has the state directory.
    #[error("another daemon uses {0}; stop it first, or give this one its own daemon.state_dir")]
    Locked(PathBuf),
    /// A directory, socket or signal.
    #[error("{what}: {error}")]
    Io {
        /// What was attempted, with the path.
        what: String,
        /// Why it failed.
        error: io::Error,
    },
}

/// Attaches what was attempted to an I/O error.
fn attempt(what: impl Into<String>) -> impl FnOnce(io::Error) -> ServeError {
    let what = what.into();
    move |error| ServeError::Io { what, error }
}

/// Runs the daemon until SIGTERM or SIGINT. `ready` hears `READY` once clients can connect.
///
/// # Errors
/// If something the daemon needs is missing or taken. Nothing was started or changed then.
pub fn run(config: &Config, ready: Option<File>) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(attempt("starting the runtime"))?;
    runtime.block_on(serve(config, ready))
}

async fn serve(config: &Config, ready: Option<File>) -> Result<(), ServeError> {
    let daemon = &config.daemon;
    let rootless = config.rootless;
    let directories = Directories::prepare(&daemon.state_dir, &daemon.runtime_dir, rootless)?;
    let _lock = lock(&daemon.state_dir)?;
    let store = Store::open(&daemon.state_dir.join("aegis.db"))?;

    let (clients, client_inputs) = unbounded_channel();
    let (shims, shim_inputs) = unbounded_channel();
    let (keeper_events, keeper_inputs) = unbounded_channel();
    let (samples, sample_inputs) = unbounded_channel();
    let (process_gone, process_inputs) = unbounded_channel();
    let (stopper, stop) = watch::channel(false);

    let client_mode = if rootless { 0o600 } else { 0o666 };
    let server = Server::bind(&daemon.socket, client_mode)?;
    // Accepts until dropped.
    let _shim_server = ShimServer::bind(&daemon.shim_socket, shims).map_err(attempt(format!(
        "listening on {}",
        daemon.shim_socket.display()
    )))?;
    let program = std::env::current_exe().map_err(attempt("finding the daemon's own program"))?;
    let shim_library = config.shim.library.clone().or_else(find_shim);
    let mut keepers = Keepers::new(
        KeepersConfig {
            state_dir: daemon.state_dir.clone(),
            runtime_dir: daemon.runtime_dir.clone(),
            keeper_program: program,
            shim_library: shim_library.clone().unwrap_or_default(),
            shim_socket: daemon.shim_socket.clone(),
            grace: config.jobs.grace,
            rootless,
        },
        keeper_events,
    )
    .map_err(RecoverError::from)?;
    let (process_events, lifecycle_inputs) = unbounded_channel();
    let lifecycle = if rootless {
        Err(Unavailable::NotRoot)
    } else {
        Lifecycle::start(&process_events)
    };
    if let Err(error) = &lifecycle {
        info!(%error, "processes are followed by /proc and pidfds alone");
    }
    keepers.set_lifecycle(lifecycle);
    let settings = Settings {
        rootless,
        uid: rustix::process::geteuid().as_raw(),
        admins: daemon.admins.clone(),
        default_requeue: config.jobs.default_requeue,
        default_retries: config.jobs.default_retries,
        default_time_limit_s: config.jobs.default_time_limit.map(|limit| limit.as_secs()),
        max_time_limit_s: config.jobs.max_time_limit.map(|limit| limit.as_secs()),
        // At most an hour by its range; at least one second.
        suspend_grace_s: u32::try_from(config.jobs.suspend_grace.as_secs()).unwrap_or(u32::MAX),
        idle_after_ms: u64::try_from(config.jobs.idle_after.as_millis()).unwrap_or(u64::MAX),
        lease_dir: directories.leases,
        shim_library,
        nvml_library: config.telemetry.nvml_library.clone(),
        state_dir: daemon.state_dir.clone(),
    };
    let mut policy = config.scheduler.clone();
    if rootless {
        // Two rootless daemons would promise the same memory twice (contract C14).
        policy.share_with_foreign = false;
    }
    let loopback = Loopback { process_gone, stop };
    let mut owner = Owner::recover(settings, policy, store, keepers, loopback)?;
    let telemetry = Telemetry::start(
        TelemetryConfig {
            nvml_library: config.telemetry.nvml_library.clone(),
            memory_interval: config.telemetry.sample_interval,
            sample_interval: config.telemetry.gpm_interval,
            process_interval: config.telemetry.process_interval,
            known: owner.gpus_in_use(),
        },
        samples,
    )
    .map_err(attempt("starting the telemetry thread"))?;
    owner.set_telemetry(Arc::new(telemetry));

    stop_on_signals(stopper)?;
    tokio::spawn(server.serve(clients));
    announce(ready);
    info!(socket = %daemon.socket.display(), rootless, "serving");
    owner
        .run(Inputs {
            clients: client_inputs,
            shims: shim_inputs,
            keepers: keeper_inputs,
            telemetry: sample_inputs,
            processes: process_inputs,
            lifecycle: lifecycle_inputs,
        })
        .await;
    // A socket file without a daemon would make clients wait for an answer. The shim socket's file
    // goes with its listener.
    let _ = std::fs::remove_file(&daemon.socket);
    Ok(())
}

/// Directories below the runtime directory.
struct Directories {
    leases: PathBuf,
}

impl Directories {
    /// Creates what is missing. The runtime directory is open to all in root mode, because shims
    /// of every user connect there; the state directory lets users reach only their own logs.
    fn prepare(state: &Path, runtime: &Path, rootless: bool) -> Result<Self, ServeError> {
        let mode = if rootless { 0o700 } else { 0o711 };
        let leases = runtime.join("leases");
        for (directory, mode) in [
            (state, mode),
            (runtime, if rootless { 0o700 } else { 0o755 }),
            (&leases, 0o700),
        ] {
            let what = || format!("creating {}", directory.display());
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(mode)
                .create(directory)
                .map_err(attempt(what()))?;
            std::fs::set_permissions(directory, std::fs::Permissions::from_mode(mode))
                .map_err(attempt(what()))?;
        }
        Ok(Self { leases })
    }
}

/// One daemon per state directory: the lock goes with the process, however it ends.
fn lock(state_dir: &Path) -> Result<File, ServeError> {
    let path = state_dir.join("lock");
    // Whoever can open it can lock it, and keep the daemon from starting.
    let owners = std::fs::Permissions::from_mode(0o600);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .and_then(|file| file.set_permissions(owners).map(|()| file))
        .map_err(attempt(format!("creating {}", path.display())))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(ServeError::Locked(state_dir.to_owned())),
        Err(error) => Err(attempt(format!("locking {}", path.display()))(error.into())),
    }
}

fn stop_on_signals(stopper: watch::Sender<bool>) -> Result<(), ServeError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(attempt("watching SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(attempt("watching SIGINT"))?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        // The owner holds the receiver until it returns.
        let _ = stopper.send(true);
    });
    Ok(())
}

/// Tells systemd and whoever started the daemon that clients can connect.
fn announce(ready: Option<File>) {
    if let Some(mut ready) = ready
        && let Err(error) = ready.write_all(b"READY\n")
    {
        warn!(%error, "--ready-fd");
    }
    if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
        warn!(%error, "sd_notify");
    }
}
