//! The one task that owns all state.
//!
//! Clients, processes, keepers and telemetry only send messages here; [`Owner::run`] takes them
//! one at a time, so the order in the journal is the order in which everything happened.
//!
//! Invariants:
//! * an action that ends or starts something is carried out only after every event that led to it
//!   is on disk (`feed.rs`);
//! * nothing here blocks for longer than one `fsync`.

mod access;
mod client;
mod clock;
mod feed;
mod idle;
mod learn;
mod lifecycle;
mod pace;
mod perform;
mod processes;
mod recover;
#[cfg(test)]
mod recover_tests;
mod resumed;
mod run;
mod sample;
mod shim;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use aegis_common::action::Action;
use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use aegis_common::policy::Policy;
use tokio::sync::{mpsc, watch};

use crate::config::Admins;
use crate::jobs::Keepers;
use crate::lease::GrowReply;
use crate::scheduler::Core;
use crate::store::{JobRecord, Store};
use crate::telemetry::{GpuFound, Telemetry};

pub(crate) use client::Until;
pub use client::{ClientCall, Peer, Reply};
pub use clock::Clock;
pub(crate) use learn::command_of;
pub use recover::{Loopback, RecoverError};
pub use run::Inputs;
pub(crate) use views::user_name;

use processes::Processes;

/// What the owner needs to know of the configuration besides the scheduler's policy.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Serve one user, the daemon's own.
    pub rootless: bool,
    /// The daemon's uid.
    pub uid: u32,
    /// Who may act on any job, besides root and the daemon's own user.
    pub admins: Admins,
    /// `--requeue` where the submitter does not say.
    pub default_requeue: bool,
    /// `--retries` where the submitter does not say.
    pub default_retries: u32,
    /// Time limit where the submitter does not say, seconds.
    pub default_time_limit_s: Option<u64>,
    /// Longest time limit a user may ask for, seconds.
    pub max_time_limit_s: Option<u64>,
    /// Time to save its state where a job with `--on-suspend` does not say, seconds.
    pub suspend_grace_s: u32,
    /// A GPU held this long without use is reported, milliseconds.
    pub idle_after_ms: u64,
    /// Where ledgers' lease pages live.
    pub lease_dir: PathBuf,
    /// The shim library given to jobs, if there is one.
    pub shim_library: Option<PathBuf>,
    /// NVML, for the checks of `aegis doctor`.
    pub nvml_library: Option<PathBuf>,
    /// Where jobs keep logs and records.
    pub state_dir: PathBuf,
}

/// All state of the daemon.
#[derive(Debug)]
pub struct Owner {
    settings: Settings,
    policy: Policy,
    clock: Clock,
    core: Core,
    store: Store,
    keepers: Keepers,
    telemetry: Option<Arc<Telemetry>>,
    telemetry_error: Option<String>,
    /// The pace telemetry was last told; it starts as if there were a job.
    telemetry_active: bool,
    machine: Vec<GpuFound>,
    /// Requests that came before the first word about the GPUs.
    early: Vec<ClientCall>,
    /// The GPUs were counted at least once, whatever was found.
    counted: bool,
    processes: Processes,
    /// Processes of jobs that hold GPU memory without the shim.
    uninstrumented: BTreeMap<ProcessKey, JobId>,
    /// Owner and command of every job that is not over, without its environment.
    records: BTreeMap<JobId, JobRecord>,
    /// Pids that NVML listed and that belonged to a job then.
    members: BTreeSet<u32>,
    /// Refusals of live jobs in words, newest last, bounded.
    refusals: BTreeMap<JobId, Vec<String>>,
    /// When running attempts last used their GPUs.
    uses: idle::Uses,
    /// What running attempts shall see as a GPU's total.
    virtual_totals: BTreeMap<JobId, u64>,
    grows: BTreeMap<u64, GrowReply>,
    grow_jobs: BTreeMap<u64, JobId>,
    waiters: Vec<client::Waiter>,
    wake_at: Option<Moment>,
    /// Actions that wait for the journal to become writable.
    deferred: Vec<Action>,
    journal_error: Option<String>,
    /// Events since the last snapshot.
    since_snapshot: u32,
    /// Bytes NVML attributes to each process.
    attributed: BTreeMap<(ProcessKey, GpuIndex), u64>,
    process_gone: mpsc::UnboundedSender<ProcessKey>,
    stop: watch::Receiver<bool>,
}
