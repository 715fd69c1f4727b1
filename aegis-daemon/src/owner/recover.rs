//! From the disk and the running keepers back to a daemon's state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aegis_common::abi::GpuUuid;
use aegis_common::action::{Action, StopHow};
use aegis_common::event::Event;
use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use aegis_common::job::Exit;
use aegis_common::policy::Policy;
use aegis_common::wire::GpuView;
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use super::idle::Uses;
use super::pressure::Pressure;
use super::processes::{Process, Processes};
use super::{Clock, Owner, Settings};
use crate::jobs::{Found, FoundState, JobsError, Keepers};
use crate::lease::{
    LeaseError, LeaseName, LeasePage, LedgerFile, held_ledgers, open_process, uuid,
};
use crate::scheduler::Core;
use crate::store::{Recovery, Store, StoreError};
use crate::telemetry::{GpuFound, Telemetry};

/// Why the daemon cannot take up its state.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The snapshot in the database is not one of this version.
    #[error(
        "the scheduler's snapshot in the database cannot be read: {0}; \
         start the version that wrote it, or move the database away"
    )]
    Snapshot(#[from] serde_json::Error),
    /// The directory of the keepers' records.
    #[error(transparent)]
    Jobs(#[from] JobsError),
}

/// The channels on which the owner hears of itself.
#[derive(Debug)]
pub struct Loopback {
    /// Instrumented processes that ended.
    pub process_gone: mpsc::UnboundedSender<ProcessKey>,
    /// Turns true when the daemon shall stop.
    pub stop: watch::Receiver<bool>,
}

impl Owner {
    /// Replays the journal, adopts what still runs, and carries out what a crash left undone.
    ///
    /// # Errors
    /// If the database or the job records cannot be read. Nothing is changed then.
    pub fn recover(
        settings: Settings,
        policy: Policy,
        store: Store,
        keepers: Keepers,
        loopback: Loopback,
    ) -> Result<Self, RecoverError> {
        let recovery = store.recover()?;
        let (core, last) = replay(&recovery)?;
        // Until NVML answers, the machine is the one of the last count.
        let machine = core.gpus(last).into_iter().filter_map(known_gpu).collect();
        let mut owner = Self {
            settings,
            policy: policy.clone(),
            clock: Clock::after(last),
            core,
            store,
            keepers,
            telemetry: None,
            telemetry_error: None,
            telemetry_active: true,
            machine,
            early: Vec::new(),
            counted: false,
            processes: Processes::default(),
            uninstrumented: BTreeMap::new(),
            records: BTreeMap::new(),
            members: BTreeSet::new(),
            refusals: BTreeMap::new(),
            uses: Uses::default(),
            pressure: Pressure::default(),
            virtual_totals: BTreeMap::new(),
            grows: BTreeMap::new(),
            grow_jobs: BTreeMap::new(),
            waiters: Vec::new(),
            wake_at: None,
            deferred: Vec::new(),
            journal_error: None,
            since_snapshot: u32::try_from(recovery.events.len()).unwrap_or(u32::MAX),
            attributed: BTreeMap::new(),
            process_gone: loopback.process_gone,
            stop: loopback.stop,
        };
        owner.load_records()?;
        // The core forgets processes of the last daemon before those that live are adopted.
        let unfinished = owner.core.resume();
        // `resume` is no event: a later replay must begin after it.
        owner.snapshot();
        owner.adopt()?;
        // Only now: what follows from it may concern any attempt that was found.
        owner.feed(Event::Configured { policy });
        owner.finish_intents(unfinished);
        owner.remove_stale_pages();
        info!(
            events = recovery.events.len(),
            live = owner.core.live().count(),
            "journal replayed"
        );
        Ok(owner)
    }

    /// The GPUs on which jobs run, with the indices that their leases and records name.
    #[must_use]
    pub fn gpus_in_use(&self) -> Vec<(GpuUuid, GpuIndex)> {
        let gpus = self.core.gpus(self.core.now()).into_iter();
        gpus.filter(|gpu| !gpu.residents.is_empty())
            .filter_map(|gpu| Some((uuid::parse(&gpu.uuid)?, gpu.index)))
            .collect()
    }

    /// Where to ask for fresh samples.
    pub fn set_telemetry(&mut self, telemetry: Arc<Telemetry>) {
        self.telemetry = Some(telemetry);
    }

    fn load_records(&mut self) -> Result<(), StoreError> {
        for job in self.core.live().collect::<Vec<_>>() {
            match self.store.job_record(job)? {
                Some(record) => self.keep(record),
                None => warn!(%job, "in the journal but without a record"),
            }
        }
        Ok(())
    }

    /// Carries out what the journal says was decided, except what adoption has overtaken.
    fn finish_intents(&mut self, unfinished: Vec<Action>) {
        for action in unfinished {
            let still = match &action {
                Action::Start { job, attempt, .. } | Action::Stop { job, attempt, .. } => {
                    self.core.job(*job).is_some_and(|job| {
                        let last = job.attempts.last();
                        last.is_some_and(|last| last.number == *attempt && last.ended.is_none())
                    })
                }
                _ => true,
            };
            if still {
                self.settle(vec![action], true);
            }
        }
    }

    /// Reconciles the core with what the keepers recorded.
    fn adopt(&mut self) -> Result<(), RecoverError> {
        let live = self.core.live().collect::<Vec<_>>();
        let expected = live.into_iter().filter_map(|job| {
            let attempts = self.core.job(job)?.attempts;
            let last = attempts.last().filter(|attempt| attempt.ended.is_none())?;
            Some((job, last.number))
        });
        let expected = expected.collect::<Vec<_>>();
        for found in self.keepers.adopt(&expected)? {
            self.adopt_attempt(found);
        }
        Ok(())
    }

    fn adopt_attempt(&mut self, found: Found) {
        let Found {
            job,
            attempt,
            gpus,
            state,
        } = found;
        if !self.records.contains_key(&job) {
            // Its end is already in the journal, or its journal was moved away.
            if !matches!(state, FoundState::Running) {
                self.keepers.forget(job, attempt);
                return;
            }
            warn!(%job, attempt, "runs without a record; it is stopped");
            self.keepers.stop(job, attempt, StopHow::Terminate);
            return;
        }
        match state {
            // The intent to start it is carried out again, unless it was to be stopped since.
            FoundState::NeverStarted => self.never_started(job, attempt),
            FoundState::Unrecorded => {
                warn!(%job, attempt, "the machine went down as it started; it counts as lost");
                let exit = Exit::Unknown;
                self.feed(Event::Ended { job, attempt, exit });
            }
            FoundState::Running => {
                info!(%job, attempt, "adopted");
                self.feed(Event::Started { job, attempt, gpus });
                if let Some(total) = self.core.virtual_total(job) {
                    self.virtual_totals.insert(job, total);
                }
                self.adopt_processes(job, attempt);
            }
            FoundState::StartFailed { error } => {
                self.feed(Event::StartFailed {
                    job,
                    attempt,
                    error,
                });
            }
            FoundState::Ended { exit } => self.adopt_end(job, attempt, gpus, exit),
            FoundState::Lost => self.adopt_end(job, attempt, gpus, Exit::Unknown),
        }
    }

    /// Lease pages of processes that ended while there was no daemon.
    fn remove_stale_pages(&self) {
        let entries = std::fs::read_dir(&self.settings.lease_dir);
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name();
            let stale = name
                .to_str()
                .and_then(LeaseName::from_file)
                .is_some_and(|name| self.processes.get(name.process).is_none());
            if stale && let Err(error) = std::fs::remove_file(entry.path()) {
                warn!(path = %entry.path().display(), %error, "a lease page stays behind");
            }
        }
    }

    fn adopt_end(&mut self, job: JobId, attempt: u32, gpus: Vec<GpuIndex>, exit: Exit) {
        self.feed(Event::Started { job, attempt, gpus });
        self.feed(Event::Ended { job, attempt, exit });
    }

    fn adopt_processes(&mut self, job: JobId, attempt: u32) {
        let Some(keeper) = self.keepers.keeper_pid(job, attempt) else {
            return;
        };
        for (name, ledger) in held_ledgers(keeper) {
            if name.job == job
                && let Err(error) = self.adopt_process(name, attempt, ledger)
            {
                warn!(%job, pid = name.process.pid, %error, "a process could not be adopted");
            }
        }
    }

    /// Takes up ledger and lease page of a process of the last daemon. Its limits stand until the
    /// core sets them anew.
    fn adopt_process(
        &mut self,
        name: LeaseName,
        attempt: u32,
        ledger: LedgerFile,
    ) -> Result<(), LeaseError> {
        let LeaseName { job, process: key } = name;
        let page = LeasePage::reopen(&self.settings.lease_dir.join(name.file()))?;
        match open_process(key) {
            Ok(pidfd) => self.watch_process(key, pidfd),
            Err(_) => drop(self.process_gone.send(key)),
        }
        let process = Process::new((job, attempt), ledger, page);
        self.processes.insert(key, process);
        self.feed(Event::ProcessAttached { job, process: key });
        self.read_ledger(key);
        Ok(())
    }
}

/// The core as the journal left it, and the newest moment in it.
fn replay(recovery: &Recovery) -> Result<(Core, Moment), serde_json::Error> {
    let mut core = match &recovery.snapshot {
        Some(json) => serde_json::from_str(json)?,
        None => Core::new(),
    };
    for stamped in &recovery.events {
        for action in core.step(stamped.at, &stamped.event) {
            if let Action::Finish { job, .. } = action {
                core.forget(job);
            }
        }
    }
    let last = core.now();
    Ok((core, last))
}

fn known_gpu(view: GpuView) -> Option<GpuFound> {
    Some(GpuFound {
        index: view.index,
        uuid_bytes: uuid::parse(&view.uuid)?,
        uuid: view.uuid,
        name: view.name,
        memory: view.memory,
        reserved: 0,
        tier: view.tier,
        peers: view.peers,
    })
}
