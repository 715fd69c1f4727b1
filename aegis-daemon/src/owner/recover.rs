//! From the disk and the running keepers back to a daemon's state.

use aegis_common::action::Action;
use aegis_common::event::Event;
use aegis_common::id::{JobId, Moment, ProcessKey};
use aegis_common::policy::Policy;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use super::processes::{Process, Processes};
use super::{Clock, Owner, Settings};
use crate::jobs::{Found, FoundState, JobsError, Keepers};
use crate::lease::{LeasePage, LedgerFile, adopt_ledgers};
use crate::scheduler::Core;
use crate::store::{Store, StoreError};
use crate::sys::pidfd::watch_exit;
use crate::telemetry::Telemetry;

/// Why the daemon cannot take up its state.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The snapshot in the database is not one of this version.
    #[error(
        "the scheduler's snapshot in the database cannot be read: {0}; start the version that wrote it, or move the database away"
    )]
    Snapshot(#[from] serde_json::Error),
    /// The directory of the keepers' records.
    #[error(transparent)]
    Jobs(#[from] JobsError),
}

/// The channels on which the owner sends to itself.
#[derive(Debug)]
pub struct Loopback {
    /// Instrumented processes that ended.
    pub process_gone: mpsc::UnboundedSender<ProcessKey>,
    /// `grow` requests whose sender hung up.
    pub grow_abandoned: mpsc::UnboundedSender<u64>,
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
        telemetry: Option<Arc<Telemetry>>,
        loopback: Loopback,
    ) -> Result<Self, RecoverError> {
        let recovery = store.recover()?;
        let mut core = match &recovery.snapshot {
            Some(json) => serde_json::from_str(json)?,
            None => Core::new(),
        };
        let mut last = Moment::default();
        let mut finished = Vec::new();
        for stamped in &recovery.events {
            last = last.max(stamped.at);
            for action in core.step(stamped.at, &stamped.event) {
                if let Action::Finish { job, .. } = action {
                    finished.push(job);
                    core.forget(job);
                }
            }
        }
        let mut owner = Self {
            settings,
            policy: policy.clone(),
            clock: Clock::after(last),
            core,
            store,
            keepers,
            telemetry,
            telemetry_error: None,
            machine: Vec::new(),
            processes: Processes::default(),
            uninstrumented: BTreeMap::new(),
            records: BTreeMap::new(),
            refusals: BTreeMap::new(),
            virtual_totals: BTreeMap::new(),
            grows: BTreeMap::new(),
            grow_jobs: BTreeMap::new(),
            next_grow: 1,
            waiters: Vec::new(),
            wake_at: None,
            deferred: Vec::new(),
            journal_error: None,
            since_snapshot: u32::try_from(recovery.events.len()).unwrap_or(u32::MAX),
            attributed: BTreeMap::new(),
            process_gone: loopback.process_gone,
            grow_abandoned: loopback.grow_abandoned,
            stop: loopback.stop,
        };
        owner.load_records()?;
        owner.feed(Event::Configured { policy });
        owner.adopt()?;
        let actions = owner.core.resume();
        owner.settle(actions, true);
        info!(
            events = recovery.events.len(),
            finished = finished.len(),
            live = owner.core.live().count(),
            "journal replayed"
        );
        Ok(owner)
    }

    fn load_records(&mut self) -> Result<(), StoreError> {
        for job in self.core.live().collect::<Vec<_>>() {
            match self.store.job_record(job)? {
                Some(record) => {
                    self.keepers.remember(&record);
                    self.records.insert(job, record);
                }
                None => warn!(%job, "in the journal but without a record"),
            }
        }
        Ok(())
    }

    /// Reconciles the core with what the keepers recorded.
    fn adopt(&mut self) -> Result<(), RecoverError> {
        let live = self.core.live().collect::<Vec<_>>();
        let expected = live.into_iter().filter_map(|job| {
            let summary = self.core.job(job)?;
            let attempt = summary
                .attempts
                .last()
                .filter(|attempt| attempt.ended.is_none())?;
            Some((job, attempt.number))
        });
        let expected = expected.collect::<Vec<_>>();
        for Found {
            job,
            attempt,
            gpus,
            state,
        } in self.keepers.adopt(&expected)?
        {
            match state {
                FoundState::NeverStarted => {}
                FoundState::Running => {
                    info!(%job, attempt, "adopted");
                    self.feed(Event::Started {
                        job,
                        attempt,
                        gpus: gpus.clone(),
                    });
                    self.adopt_processes(job, attempt);
                }
                FoundState::StartFailed { error } => {
                    self.feed(Event::StartFailed {
                        job,
                        attempt,
                        error,
                    });
                }
                FoundState::Ended { exit } => {
                    self.feed(Event::Started { job, attempt, gpus });
                    self.adopt_processes(job, attempt);
                    for key in self.processes.of_job(job) {
                        self.on_process_gone(key);
                    }
                    self.feed(Event::Ended { job, attempt, exit });
                }
            }
        }
        Ok(())
    }

    fn adopt_processes(&mut self, job: JobId, attempt: u32) {
        let Some(keeper) = self.keepers.keeper_pid(job, attempt) else {
            return;
        };
        let Some(uid) = self.records.get(&job).map(|record| record.uid) else {
            return;
        };
        for (key, ledger) in adopt_ledgers(keeper, job) {
            if let Err(error) = self.adopt_process(key, (job, attempt, uid), ledger) {
                warn!(%job, pid = key.pid, %error, "a process could not be adopted");
            }
        }
    }

    fn adopt_process(
        &mut self,
        key: ProcessKey,
        member: (JobId, u32, u32),
        ledger: LedgerFile,
    ) -> Result<(), std::io::Error> {
        let page = LeasePage::reopen(&self.settings.lease_dir, key)?;
        let held = self.core.job(member.0).map(|job| {
            job.attempts
                .into_iter()
                .find(|found| found.number == member.1)
                .map(|found| found.gpus)
        });
        let held = held.flatten().unwrap_or_default();
        let process = Process::adopted(member, ledger, page, held);
        self.processes.insert(key, process);
        self.watch_process(key);
        self.feed(Event::ProcessAttached {
            job: member.0,
            process: key,
        });
        Ok(())
    }

    /// Has the process's end reported to [`Owner::run`].
    pub(super) fn watch_process(&self, key: ProcessKey) {
        let gone = self.process_gone.clone();
        watch_exit(key, move || {
            // The owner is gone only when the daemon stops.
            let _ = gone.send(key);
        });
    }
}
