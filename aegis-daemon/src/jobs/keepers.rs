//! The owner's view of all keepers.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aegis_common::action::StopHow;
use aegis_common::id::{GpuIndex, JobId, ProcessKey};
use aegis_common::job::Exit;
use tokio::sync::mpsc;

use super::layout::Layout;
use super::supervise::{Origin, Request, Supervisor};
use super::{followed, spawn, tree};
use crate::store::JobRecord;
use crate::telemetry::{Lifecycle, Unavailable};

/// How keepers are started.
#[derive(Clone, Debug)]
pub struct KeepersConfig {
    /// Holds `jobs/`. In root mode users must be able to pass through it (0711) to their logs.
    pub state_dir: PathBuf,
    /// Holds `keepers/`, the control sockets. Emptied by a reboot.
    pub runtime_dir: PathBuf,
    /// `aegisd` itself; run with the argument `keeper`.
    pub keeper_program: PathBuf,
    /// `libaegis_shim.so`. If there is none, jobs run uninstrumented.
    pub shim_library: PathBuf,
    /// The socket the shim connects to.
    pub shim_socket: PathBuf,
    /// Between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Jobs run as the daemon's own user; those of others are refused.
    pub rootless: bool,
}

/// One attempt to start.
#[derive(Clone, Copy, Debug)]
pub struct StartOrder<'a> {
    /// The job.
    pub job: JobId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// What to run and as whom.
    pub record: &'a JobRecord,
    /// Its GPUs' UUIDs, in rank order.
    pub gpu_uuids: &'a [String],
    /// Its GPUs, in rank order.
    pub gpus: &'a [GpuIndex],
    /// An earlier attempt was asked to save its state.
    pub resumed: bool,
}

/// What happened to an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeeperEvent {
    /// The start record exists and the command was executed, or already has ended.
    Started {
        /// The job.
        job: JobId,
        /// The attempt.
        attempt: u32,
        /// The GPUs by the start record. After a crash these may be others than ordered.
        gpus: Vec<GpuIndex>,
    },
    /// The command could not be started. Comes instead of `Started`, or after it if the attempt
    /// was adopted before its keeper knew.
    StartFailed {
        /// The job.
        job: JobId,
        /// The attempt.
        attempt: u32,
        /// What failed, with the path.
        error: String,
    },
    /// The whole process tree is gone. Comes after `Started`.
    Ended {
        /// The job.
        job: JobId,
        /// The attempt.
        attempt: u32,
        /// How the main process ended; [`Exit::Unknown`] if the keeper was killed.
        exit: Exit,
    },
}

/// The keepers' files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JobsError {
    /// A directory or lock cannot be made or read.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A start record makes no sense: whether its command still runs cannot be told.
    #[error("{problem}; see what it says about a running job, then move it away")]
    Record {
        /// Path and error.
        problem: String,
    },
}

impl JobsError {
    pub(crate) fn io(path: &Path, error: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            error,
        }
    }
}

/// A keeper's identity, shared with the task that watches it: it changes if another keeper turns
/// out to run the attempt.
pub(crate) type SharedKey = Arc<Mutex<Option<ProcessKey>>>;

/// A keeper being watched.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) requests: mpsc::UnboundedSender<Request>,
    pub(crate) keeper: SharedKey,
}

impl Handle {
    /// The keeper, if it still is watched and not yet replaced by another process.
    pub(crate) fn keeper(&self) -> Option<ProcessKey> {
        if self.requests.is_closed() {
            return None;
        }
        *self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All keepers of this daemon. Its methods do not wait for keepers and must be called within a
/// tokio runtime.
#[derive(Debug)]
pub struct Keepers {
    pub(crate) config: Arc<KeepersConfig>,
    pub(crate) layout: Layout,
    events: mpsc::UnboundedSender<KeeperEvent>,
    pub(crate) handles: HashMap<(JobId, u32), Handle>,
    pub(crate) tokens: HashMap<[u8; 32], (JobId, u32)>,
    pub(super) lifecycle: Result<Lifecycle, Unavailable>,
    /// This boot is on disk as that of the records.
    pub(super) boot_noted: bool,
}

impl Keepers {
    /// Makes the directories. Results of the other methods go to `events`.
    ///
    /// # Errors
    /// A directory cannot be made.
    pub fn new(
        config: KeepersConfig,
        events: mpsc::UnboundedSender<KeeperEvent>,
    ) -> Result<Self, JobsError> {
        let layout = Layout::new(&config.state_dir, &config.runtime_dir);
        for (path, mode) in [(&layout.jobs, 0o711), (&layout.keepers, 0o700)] {
            std::fs::create_dir_all(path)
                .and_then(|()| {
                    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
                })
                .map_err(|error| JobsError::io(path, error))?;
        }
        let fence = layout.fence();
        std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&fence)
            .map_err(|error| JobsError::io(&fence, error))?;
        Ok(Self {
            config: Arc::new(config),
            layout,
            events,
            handles: HashMap::new(),
            tokens: HashMap::new(),
            lifecycle: Err(Unavailable::NotBuilt),
            boot_noted: false,
        })
    }

    /// Starts a keeper for the attempt. Idempotent: while one is watched nothing happens; if one
    /// has run the attempt before, its result is reported again.
    pub fn start(&mut self, order: StartOrder<'_>) {
        let key = (order.job, order.attempt);
        if self
            .handles
            .get(&key)
            .is_some_and(|handle| !handle.requests.is_closed())
        {
            return;
        }
        self.note_boot();
        self.tokens.insert(order.record.token, key);
        match spawn::spawn(&self.config, &order) {
            Ok(spawned) => {
                crate::failpoint::hit("keeper.spawned");
                let keeper = spawned.key;
                self.watch(
                    key,
                    order.record.token,
                    Some(keeper),
                    Origin::Spawned(spawned),
                );
            }
            Err(error) => {
                let program = self.config.keeper_program.display();
                let _ = self.events.send(KeeperEvent::StartFailed {
                    job: order.job,
                    attempt: order.attempt,
                    error: format!("the keeper {program}: {error}"),
                });
            }
        }
    }

    /// Ends the attempt's process tree: SIGTERM, the configured grace, SIGKILL; to suspend it, its
    /// main process first gets the declared signal and time to save and exit. Idempotent: a second
    /// suspension changes nothing, a stop cuts one short. Nothing happens for an attempt that is
    /// not running. The result is `Ended`.
    pub fn stop(&mut self, job: JobId, attempt: u32, how: StopHow) {
        self.request(job, attempt, Request::Stop(how));
    }

    /// Lets the keeper hold a descriptor (a ledger), so that it survives this daemon and shows up in
    /// `/proc/KEEPER/fd`.
    pub fn hold(&mut self, job: JobId, attempt: u32, descriptor: OwnedFd, name: &str) {
        let name = name.to_owned();
        self.request(job, attempt, Request::Hold { name, descriptor });
    }

    /// Lets the keeper close a held descriptor.
    pub fn release(&mut self, job: JobId, attempt: u32, name: &str) {
        let name = name.to_owned();
        self.request(job, attempt, Request::Release { name });
    }

    /// The attempt's end is in the journal: adoption leaves it out from now on.
    pub fn forget(&mut self, job: JobId, attempt: u32) {
        self.handles.remove(&(job, attempt));
        self.tokens.retain(|_, of| *of != (job, attempt));
        let seen = self.layout.seen(job, attempt);
        // Should it be lost, the end is reported once more and recognised by the owner.
        if let Err(error) = std::fs::File::create(&seen) {
            tracing::warn!("{}: {error}", seen.display());
        }
    }

    /// The attempts by their job's token. A job's token stays the same for all its attempts.
    #[must_use]
    pub const fn tokens(&self) -> &HashMap<[u8; 32], (JobId, u32)> {
        &self.tokens
    }

    /// The pid of the attempt's keeper while it lives.
    #[must_use]
    pub fn keeper_pid(&self, job: JobId, attempt: u32) -> Option<u32> {
        let key = self.handles.get(&(job, attempt))?.keeper()?;
        (tree::identify(key.pid) == Some(key)).then_some(key.pid)
    }

    fn request(&self, job: JobId, attempt: u32, request: Request) {
        if let Some(handle) = self.handles.get(&(job, attempt)) {
            // A closed channel: the attempt has ended, its event is on the way.
            let _ = handle.requests.send(request);
        }
    }

    /// Watches an attempt until it has ended.
    pub(crate) fn watch(
        &mut self,
        (job, attempt): (JobId, u32),
        token: [u8; 32],
        keeper: Option<ProcessKey>,
        origin: Origin,
    ) {
        let lifecycle = self.lifecycle.as_ref().ok().cloned();
        if let (Some(lifecycle), Some(keeper)) = (&lifecycle, keeper) {
            followed::follow_tree(lifecycle, (job, attempt), keeper);
        }
        let (requests, receiver) = mpsc::unbounded_channel();
        let keeper = Arc::new(Mutex::new(keeper));
        self.tokens.insert(token, (job, attempt));
        self.handles.insert(
            (job, attempt),
            Handle {
                requests,
                keeper: Arc::clone(&keeper),
            },
        );
        let supervisor = Supervisor {
            config: Arc::clone(&self.config),
            layout: self.layout.clone(),
            events: self.events.clone(),
            job,
            attempt,
            token,
            keeper,
            lifecycle,
            requests: receiver,
            started: false,
            suspending: false,
        };
        tokio::spawn(supervisor.run(origin));
    }
}
