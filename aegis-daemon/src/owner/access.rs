//! What the verbs in [`crate::api`] may see and do.

use aegis_common::event::Event;
use aegis_common::id::JobId;
use aegis_common::job::Resources;
use aegis_common::wire::{Check, ErrorCode, Failure, GpuView, Launch, LedgerView};

use super::{Owner, Peer, Settings};
use crate::lease::inspect;
use crate::scheduler::Infeasible;
use crate::store::{JobRecord, Store};

impl Owner {
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Why the journal cannot be written, while it cannot.
    pub(crate) fn journal_trouble(&self) -> Option<String> {
        self.journal_error.clone()
    }

    /// An event a client caused.
    pub(crate) fn feed_client(&mut self, event: Event) {
        self.feed(event);
    }

    /// Keeps the record of a new job, in the open transaction and in memory.
    pub(crate) fn remember(&mut self, record: JobRecord) {
        self.store.put_job(&record);
        self.keepers.remember(&record);
        self.records.insert(record.id, record);
    }

    /// Could the machine ever run it?
    pub(crate) fn check_feasible(&self, resources: &Resources) -> Result<(), Failure> {
        if self.machine.is_empty() {
            let why = self
                .telemetry_error
                .as_deref()
                .unwrap_or("NVML has not answered yet");
            return Err(Failure {
                code: ErrorCode::Impossible,
                message: format!("no GPU is known: {why}"),
                hint: Some("`aegis doctor` shows what NVML says".to_owned()),
                job: None,
            });
        }
        self.core
            .check_feasible(resources)
            .map_err(|infeasible: Infeasible| Failure {
                code: ErrorCode::Impossible,
                message: infeasible.to_string(),
                hint: Some("`aegis gpus` shows what this machine has".to_owned()),
                job: None,
            })
    }

    /// A record with a fresh number and secret.
    pub(crate) fn new_record(
        &mut self,
        peer: &Peer,
        name: String,
        resources: Resources,
        launch: Launch,
    ) -> Result<JobRecord, Failure> {
        let storage = |error: String| crate::api::failure(ErrorCode::Storage, &error);
        let token = crate::jobs::new_token().map_err(|error| storage(error.to_string()))?;
        let id = self
            .store
            .next_job_id()
            .map_err(|error| storage(error.to_string()))?;
        let user = uzers::get_user_by_uid(peer.uid);
        let user = user.map(|user| user.name().to_string_lossy().into_owned());
        Ok(JobRecord {
            id,
            uid: peer.uid,
            gid: peer.gid,
            groups: peer.groups.clone(),
            user,
            name,
            resources,
            launch,
            token,
            submitted: self.clock.now(),
        })
    }

    /// The first obstacle of a pending job, in words.
    pub(crate) fn first_blocker(&mut self, job: JobId) -> Option<String> {
        let now = self.clock.now();
        self.core.explain(job, now).first().map(ToString::to_string)
    }

    pub(crate) fn gpus(&mut self) -> Vec<GpuView> {
        let now = self.clock.now();
        self.core.gpus(now)
    }

    /// Every instrumented process, freshly read.
    pub(crate) fn ledger_views(&mut self) -> Vec<LedgerView> {
        self.read_ledgers();
        let now = self.clock.now();
        let views = self.processes.iter().filter_map(|(key, process)| {
            let snapshot = process.last.as_ref()?;
            Some(inspect::view(&inspect::Seen {
                job: Some(process.job),
                process: *key,
                alive: true,
                snapshot,
                idle_ms: process.moved.map(|moved| now.millis_since(moved)),
                machine: &self.machine,
                limit: &|gpu| process.limit(gpu),
                nvml: &|gpu| self.attributed.get(&(*key, gpu)).copied(),
            }))
        });
        views.collect()
    }

    pub(crate) fn telemetry_checks(&self) -> Vec<Check> {
        crate::telemetry::checks(&self.machine, self.telemetry_error.as_deref())
    }
}
