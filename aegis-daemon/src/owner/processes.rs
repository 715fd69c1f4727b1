//! The processes that introduced themselves, with their ledgers and lease pages.

use std::collections::BTreeMap;

use aegis_common::abi::GpuUuid;
use aegis_common::abi::lease::{FLAG_HELD, FLAG_OLDEST};
use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use tracing::debug;

use super::sample::Told;
use crate::lease::progress::{Pace, Tracker};
use crate::lease::{LeaseError, LeaseLineView, LeasePage, LedgerFile, LedgerSnapshot};
use crate::telemetry::GpuFound;

/// One process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) job: JobId,
    pub(super) attempt: u32,
    pub(super) ledger: LedgerFile,
    pub(super) page: LeasePage,
    /// The last reading, made plausible.
    pub(super) last: Option<LedgerSnapshot>,
    /// What the core was last told.
    pub(super) told: Option<Told>,
    /// When launches last increased.
    pub(super) moved: Option<Moment>,
    /// Follows its launch sequence.
    pub(super) tracker: Tracker,
    /// The last pace measured.
    pub(super) pace: Option<(Moment, Pace)>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Processes {
    map: BTreeMap<ProcessKey, Process>,
}

impl Process {
    pub(super) fn new((job, attempt): (JobId, u32), ledger: LedgerFile, page: LeasePage) -> Self {
        Self {
            job,
            attempt,
            ledger,
            page,
            last: None,
            told: None,
            moved: None,
            tracker: Tracker::default(),
            pace: None,
        }
    }

    /// One lease line per GPU of the machine, limits 0. GPUs the job does not hold have one too: a
    /// program that picks a GPU of its own gets no memory there.
    ///
    /// # Errors
    /// The page cannot be written.
    pub(super) fn lay_out(
        &self,
        machine: &[GpuFound],
        held: &[GpuIndex],
        virtual_total: Option<u64>,
    ) -> Result<(), LeaseError> {
        for (index, gpu) in machine.iter().enumerate() {
            let held = held.contains(&gpu.index);
            let line = LeaseLineView {
                uuid: gpu.uuid_bytes,
                limit: 0,
                virtual_total: virtual_total.filter(|_| held).unwrap_or(0),
                flags: if held { FLAG_HELD } else { 0 },
            };
            self.page.set_line(index, line)?;
        }
        Ok(())
    }

    /// Sets the limit and the "oldest resident" mark.
    ///
    /// # Errors
    /// The page has no line for the GPU or cannot be written.
    pub(super) fn set_lease(
        &self,
        uuid: &GpuUuid,
        limit: u64,
        oldest: bool,
    ) -> Result<(), LeaseError> {
        let index = self.page.line_of(uuid).ok_or(LeaseError::NoSuchLine(0))?;
        let Some(line) = self.page.line(index) else {
            return Err(LeaseError::NoSuchLine(index));
        };
        let mark = if oldest { FLAG_OLDEST } else { 0 };
        let flags = line.flags & !FLAG_OLDEST | mark;
        if flags != line.flags {
            self.page.set_line(index, LeaseLineView { flags, ..line })?;
        }
        self.page.set_limit(index, limit)
    }
}

impl Processes {
    pub(super) fn insert(&mut self, key: ProcessKey, process: Process) {
        self.map.insert(key, process);
    }

    pub(super) fn remove(&mut self, key: ProcessKey) -> Option<Process> {
        self.map.remove(&key)
    }

    pub(super) fn get(&self, key: ProcessKey) -> Option<&Process> {
        self.map.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: ProcessKey) -> Option<&mut Process> {
        self.map.get_mut(&key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&ProcessKey, &Process)> {
        self.map.iter()
    }

    pub(super) fn keys(&self) -> Vec<ProcessKey> {
        self.map.keys().copied().collect()
    }

    pub(super) fn of_job(&self, job: JobId) -> Vec<ProcessKey> {
        let of_job = self.map.iter().filter(|(_, process)| process.job == job);
        of_job.map(|(key, _)| *key).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Tells every process that the daemon is alive.
    pub(super) fn heartbeat(&self, monotonic_ns: u64) {
        for process in self.map.values() {
            if let Err(error) = process.page.heartbeat(monotonic_ns) {
                debug!(%error, "heartbeat");
            }
        }
    }
}
