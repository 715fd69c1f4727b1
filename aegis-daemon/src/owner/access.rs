//! What the verbs in [`crate::api`] may see and do.

use std::io::Read;

use aegis_common::abi::lease::FLAG_HELD;
use aegis_common::event::Event;
use aegis_common::id::JobId;
use aegis_common::job::Resources;
use aegis_common::learned::Learned;
use aegis_common::wire::{ErrorCode, Failure, GpuView, Launch, LedgerView};

use super::sample::by_uuid;
use super::{Owner, Peer, Settings};
use crate::lease::{LeaseName, inspect};
use crate::scheduler::{Explainer, Infeasible};
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

    /// Whether the kernel follows jobs' processes: how many events were lost, or why not and what
    /// can be done.
    pub(crate) fn lifecycle_state(&self) -> Result<u64, (String, &'static str)> {
        match self.keepers.lifecycle() {
            Ok(lifecycle) => Ok(lifecycle.lost()),
            Err(why) => Err((why.to_string(), why.hint())),
        }
    }

    /// An event a client caused.
    pub(crate) fn feed_client(&mut self, event: Event) {
        self.feed(event);
    }

    /// Keeps the record of a new job, in the open transaction and in memory.
    pub(crate) fn remember(&mut self, record: JobRecord) {
        if let Err(failure) = self.store.put_job(&record) {
            tracing::error!(job = %record.id, error = %failure, "a job's record cannot be kept");
        }
        self.keep(record);
    }

    /// Keeps a record in memory, without the environment: thousands of pending jobs would hold
    /// thousands of nearly equal ones. [`Owner::whole_record`] has it.
    pub(super) fn keep(&mut self, mut record: JobRecord) {
        record.launch.env = Vec::new();
        self.records.insert(record.id, record);
    }

    /// A live job's record as it was submitted, from the database.
    ///
    /// # Errors
    /// It cannot be read, or is not there.
    pub(super) fn whole_record(&self, job: JobId) -> Result<JobRecord, String> {
        match self.store.job_record(job) {
            Ok(Some(record)) => Ok(record),
            Ok(None) => Err(format!("the database has no record of job {job}")),
            Err(failure) => Err(failure.to_string()),
        }
    }

    /// Could the machine ever run it?
    pub(crate) fn check_feasible(&self, resources: &Resources) -> Result<(), Failure> {
        let impossible = |message: String, hint: &str| Failure {
            code: ErrorCode::Impossible,
            message,
            hint: Some(hint.to_owned()),
            job: None,
        };
        if self.machine.is_empty() {
            let why = self.telemetry_error.as_deref();
            let why = why.unwrap_or("NVML lists none");
            let message = format!("no GPU is known: {why}");
            return Err(impossible(message, "`aegis doctor` shows what NVML says"));
        }
        self.core
            .check_feasible(resources)
            .map_err(|infeasible: Infeasible| {
                impossible(
                    infeasible.to_string(),
                    "`aegis gpus` shows what this machine has",
                )
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
        let token = new_token().map_err(|error| {
            Failure::new(ErrorCode::Internal, format!("no random bytes: {error}"))
        })?;
        Ok(JobRecord {
            id: self.store.next_job_id(),
            uid: peer.uid,
            gid: peer.gid,
            groups: peer.groups.clone(),
            name,
            resources,
            launch,
            token,
            submitted: self.clock.now(),
            learned: Learned::default(),
        })
    }

    /// What explains the jobs that are pending now.
    pub(crate) fn explainer(&self) -> Explainer<'_> {
        self.core.explainer(self.clock.now())
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
            let lines = (0..process.page.lines()).filter_map(|line| process.page.line(line));
            let held = lines.filter(|line| line.flags & FLAG_HELD != 0);
            let context = inspect::Context {
                name: LeaseName {
                    job: process.job,
                    process: *key,
                },
                lease: &held.collect::<Vec<_>>(),
                nvml: &self.proofs(*key),
                idle_ms: process.moved.map(|moved| now.millis_since(moved)),
                pace: process.pace_view(now),
            };
            let index_of = |uuid: &_| Some(by_uuid(&self.machine, uuid)?.index);
            Some(inspect::view(process.last.as_ref()?, &context, index_of))
        });
        views.collect()
    }

    /// What telemetry reported last, if it is trouble.
    pub(crate) fn telemetry_error(&self) -> Option<&str> {
        self.telemetry_error.as_deref()
    }
}

/// 128 random bits as hexadecimal digits.
fn new_token() -> std::io::Result<[u8; 32]> {
    let mut random = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    let mut token = [0; 32];
    for (digits, byte) in token.chunks_exact_mut(2).zip(random) {
        for (digit, nibble) in digits.iter_mut().zip([byte >> 4, byte & 15]) {
            *digit = b"0123456789abcdef"[usize::from(nibble)];
        }
    }
    Ok(token)
}
