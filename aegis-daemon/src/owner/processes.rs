//! The processes that introduced themselves, with their ledgers and lease pages.

use std::collections::BTreeMap;

use aegis_common::abi::lease::{FLAG_HELD, FLAG_OLDEST};
use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};

use crate::lease::{LeasePage, LedgerFile, LedgerSnapshot};
use crate::telemetry::GpuFound;

/// One process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) job: JobId,
    pub(super) attempt: u32,
    pub(super) uid: u32,
    pub(super) ledger: LedgerFile,
    pub(super) page: LeasePage,
    /// GPU of each lease line.
    lines: Vec<GpuIndex>,
    /// GPUs the job holds.
    held: Vec<GpuIndex>,
    virtual_total: u64,
    /// The last reading, made plausible.
    pub(super) last: Option<LedgerSnapshot>,
    /// What the core was last told.
    pub(super) told: Option<super::sample::Told>,
    /// When launches last increased.
    pub(super) moved: Option<Moment>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Processes {
    map: BTreeMap<ProcessKey, Process>,
}

impl Process {
    /// A process with one lease line per GPU of the machine. GPUs its job does not hold have a
    /// line with limit 0: a program that picks a GPU of its own gets no memory there.
    pub(super) fn new(
        (job, attempt, uid): (JobId, u32, u32),
        ledger: LedgerFile,
        page: LeasePage,
        machine: &[GpuFound],
        held: Vec<GpuIndex>,
        virtual_total: Option<u64>,
    ) -> Self {
        let process = Self {
            job,
            attempt,
            uid,
            ledger,
            page,
            lines: machine.iter().map(|gpu| gpu.index).collect(),
            held,
            virtual_total: virtual_total.unwrap_or(0),
            last: None,
            told: None,
            moved: None,
        };
        for (line, gpu) in machine.iter().enumerate() {
            let held = process.held.contains(&gpu.index);
            let (flags, total) = if held {
                (FLAG_HELD, process.virtual_total)
            } else {
                (0, 0)
            };
            process
                .page
                .set_line(line, &gpu.uuid_bytes, 0, total, flags);
        }
        process
    }

    fn set_lease(&self, gpu: GpuIndex, limit: u64, oldest: bool) {
        let Some(line) = self.lines.iter().position(|index| *index == gpu) else {
            return;
        };
        let held = if self.held.contains(&gpu) {
            FLAG_HELD
        } else {
            0
        };
        let oldest = if oldest { FLAG_OLDEST } else { 0 };
        self.page.set_limit(line, limit, held | oldest);
    }

    /// The limit in the page, bytes.
    pub(super) fn limit(&self, gpu: GpuIndex) -> Option<u64> {
        let line = self.lines.iter().position(|index| *index == gpu)?;
        Some(self.page.limit(line))
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

    pub(super) fn set_lease(&self, key: ProcessKey, gpu: GpuIndex, limit: u64, oldest: bool) {
        if let Some(process) = self.map.get(&key) {
            process.set_lease(gpu, limit, oldest);
        }
    }

    /// Tells every process that the daemon is alive.
    pub(super) fn heartbeat(&self, monotonic_ns: u64) {
        for process in self.map.values() {
            process.page.heartbeat(monotonic_ns);
        }
    }
}
