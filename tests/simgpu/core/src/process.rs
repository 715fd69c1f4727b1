//! Processes of the simulated machine: slots keyed by (pid, start time), released when the owner
//! is gone, however it went: nobody has to say goodbye, whoever looks next finds it dead.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::error::{Error, Result};
use crate::layout::{Counters, DEAD, FOREIGN, FREE, LIVE, MAX_LEDGER, ProcessState, State};
use crate::machine::Machine;
use crate::sys;

/// A registered process: the handle through which a driver library charges and launches.
#[derive(Clone, Copy)]
pub struct Process<'m> {
    pub(crate) machine: &'m Machine,
    pub(crate) slot: usize,
}

struct Stat {
    state: char,
    threads: u64,
    start_time: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, field 2, may hold anything, so count from its closing parenthesis.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        threads: fields.get(17)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
    })
}

/// Start time of a process (clock ticks since boot, field 22 of its stat file), if it exists.
pub fn start_time(pid: u32) -> Option<u64> {
    stat(pid).map(|s| s.start_time)
}

/// Whether the process still runs. A zombie does not: its driver files are closed.
pub fn process_alive(pid: u32, start_time: u64) -> bool {
    match stat(pid) {
        Some(s) => {
            let zombie = matches!(s.state, 'Z' | 'X') && s.threads <= 1;
            s.start_time == start_time && !zombie
        }
        // Hidden by the mount options of /proc: judge by the pid alone.
        None => sys::exists(pid),
    }
}

/// Pid and start time of the calling process, as the namespace of its `/proc` sees it (a container
/// that keeps the host's `/proc` is thus known by its host pid, as NVML would show it).
pub fn self_identity() -> (u32, u64) {
    let own = std::process::id();
    let pid = std::fs::read_link("/proc/self")
        .ok()
        .and_then(|link| link.to_str().and_then(|text| text.parse().ok()))
        .unwrap_or(own);
    (pid, start_time(pid).unwrap_or(0))
}

impl Machine {
    /// Finds or makes the slot of a process.
    pub fn register(&self, pid: u32, start_time: u64) -> Result<Process<'_>> {
        self.claim(pid, start_time, LIVE)
    }

    pub(crate) fn claim(&self, pid: u32, start_time: u64, status: u32) -> Result<Process<'_>> {
        let state = self.state();
        let _guard = state.lock.lock();
        if let Some(slot) = find(state, pid, start_time, status) {
            return Ok(Process {
                machine: self,
                slot,
            });
        }
        reap(state);
        let slot = vacant(state).ok_or(Error::TooManyProcesses)?;
        let generation = 1 + state
            .processes
            .iter()
            .map(|p| p.generation.load(Relaxed))
            .max()
            .unwrap_or(0);
        let process = &state.processes[slot];
        process.clear(self.config().gpus.len());
        process.pid.store(pid, Relaxed);
        process.start_time.store(start_time, Relaxed);
        process.generation.store(generation, Relaxed);
        process.status.store(status, Release);
        Ok(Process {
            machine: self,
            slot,
        })
    }

    /// Releases what dead processes held. Readers and allocators do this themselves.
    pub fn reap(&self) {
        let state = self.state();
        let _guard = state.lock.lock();
        reap(state);
    }
}

fn find(state: &State, pid: u32, start_time: u64, status: u32) -> Option<usize> {
    state.processes.iter().position(|p| {
        p.status.load(Acquire) == status
            && p.pid.load(Relaxed) == pid
            && p.start_time.load(Relaxed) == start_time
    })
}

fn vacant(state: &State) -> Option<usize> {
    let by_status = |wanted| {
        let matching = state
            .processes
            .iter()
            .enumerate()
            .filter(move |(_, p)| p.status.load(Acquire) == wanted);
        matching
            .min_by_key(|(_, p)| p.generation.load(Relaxed))
            .map(|(slot, _)| slot)
    };
    by_status(FREE).or_else(|| by_status(DEAD))
}

/// Marks dead owners; returns whether there were any. Call with the lock held.
pub(crate) fn reap(state: &State) -> bool {
    let mut found = false;
    for process in &state.processes {
        if process.status.load(Acquire) != LIVE {
            continue;
        }
        if !process_alive(process.pid.load(Relaxed), process.start_time.load(Relaxed)) {
            process.release();
            found = true;
        }
    }
    found
}

impl ProcessState {
    pub(crate) fn is_present(&self) -> bool {
        matches!(self.status.load(Acquire), LIVE | FOREIGN)
    }

    /// What the kernel driver does when a process's files are closed; statistics stay.
    fn release(&self) {
        self.status.store(DEAD, Release);
        for gpu in &self.gpus {
            gpu.allocated.store(0, Relaxed);
            gpu.context.store(0, Relaxed);
            gpu.modules.store(0, Relaxed);
            gpu.queue.abandon();
        }
        self.clear_ledger();
    }

    fn clear(&self, gpus: usize) {
        for gpu in self.gpus.iter().take(gpus) {
            gpu.allocated.store(0, Relaxed);
            gpu.context.store(0, Relaxed);
            gpu.modules.store(0, Relaxed);
            gpu.peak.store(0, Relaxed);
            gpu.queue.clear();
        }
        let c = &self.counters;
        for counter in [
            &c.launches,
            &c.graph_launches,
            &c.copies,
            &c.memsets,
            &c.host_functions,
        ] {
            counter.store(0, Relaxed);
        }
        self.hung.store(0, Relaxed);
        self.clear_ledger();
    }

    fn clear_ledger(&self) {
        let used = self.ledger_used.load(Relaxed) as usize;
        for entry in self.ledger.iter().take(used.min(MAX_LEDGER)) {
            entry.handle.store(0, Relaxed);
        }
        self.ledger_used.store(0, Relaxed);
    }
}

impl<'m> Process<'m> {
    pub(crate) fn state(&self) -> &'m ProcessState {
        &self.machine.state().processes[self.slot]
    }

    /// The machine.
    pub fn machine(&self) -> &'m Machine {
        self.machine
    }

    /// Pid as registered.
    pub fn pid(&self) -> u32 {
        self.state().pid.load(Relaxed)
    }

    /// Start time as registered.
    pub fn start_time(&self) -> u64 {
        self.state().start_time.load(Relaxed)
    }

    /// Counts of the calls that are not journalled.
    pub fn counters(&self) -> &'m Counters {
        &self.state().counters
    }
}
