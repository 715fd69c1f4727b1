//! Telemetry and ledger readings on their way to the core.

use std::collections::BTreeMap;

use aegis_common::abi::GpuUuid;
use aegis_common::event::{Event, Gpu, ProcessGpu};
use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use tracing::{debug, error, info, warn};

use super::Owner;
use crate::lease::{LedgerSnapshot, Proof, is_alive, monotonic_ns, sanitise};
use crate::procfs::identify;
use crate::telemetry::{GpuFound, RawSample, TelemetryEvent, attribute, process_info};

/// An unchanged account is repeated to the core at most this often, so that it knows that
/// launches go on without the journal growing by every reading.
const REPEAT_MS: u64 = 10_000;
/// Pids of jobs' processes remembered before those that are gone are dropped.
const MEMBERS_MAX: usize = 1024;

/// What the core was last told about a process.
#[derive(Debug)]
pub(super) struct Told {
    at: Moment,
    launches: u64,
    gpus: Vec<ProcessGpu>,
}

impl Owner {
    pub(super) fn on_telemetry(&mut self, event: TelemetryEvent) {
        match event {
            TelemetryEvent::Gpus(found) => {
                self.machine_found(found);
                self.serve_early();
            }
            TelemetryEvent::Sample(raw) => {
                self.sampled(raw);
                self.report_idle();
            }
            TelemetryEvent::Unavailable { error } => {
                if self.telemetry_error.as_ref() != Some(&error) {
                    error!(%error, "no telemetry: nothing is placed next to a running job");
                    self.telemetry_error = Some(error);
                    self.serve_early();
                }
            }
        }
    }

    fn machine_found(&mut self, found: Vec<GpuFound>) {
        self.telemetry_error = None;
        // The first count is news even if it finds none: the journal may know of some.
        let first = !std::mem::replace(&mut self.counted, true);
        if found == self.machine && !first {
            return;
        }
        info!(gpus = found.len(), "machine");
        self.machine = found;
        let gpus = self.machine.iter().map(Gpu::from).collect();
        self.feed(Event::MachineFound { gpus });
    }

    fn sampled(&mut self, mut raw: RawSample) {
        let gpu = raw.gpu;
        let mut members = BTreeMap::new();
        if let Some(processes) = &mut raw.processes {
            processes.retain(|(pid, _)| !self.has_departed(*pid));
            members = self.members_of(processes);
            self.attributed.retain(|(_, at), _| *at != gpu);
            for (pid, bytes) in processes.iter() {
                let known = self.processes.iter().find(|(key, _)| key.pid == *pid);
                if let Some((key, _)) = known {
                    self.attributed.insert((*key, gpu), *bytes);
                }
            }
            self.find_uninstrumented(processes, &members);
        }
        let job_of = |pid| members.get(&pid).copied();
        let sample = attribute(raw, job_of, process_info);
        self.feed(Event::Sampled { sample });
    }

    /// A process of a job in a list that was read before it ended. Without its keeper it would
    /// pass for a stranger; what it held settles until NVML shows it free.
    fn has_departed(&self, pid: u32) -> bool {
        self.members.contains(&pid) && identify(pid).is_none()
    }

    /// The jobs of the processes in a list, each looked up once: that walks `/proc`.
    fn members_of(&mut self, processes: &[(u32, u64)]) -> BTreeMap<u32, JobId> {
        if self.members.len() > MEMBERS_MAX {
            self.members.retain(|pid| identify(*pid).is_some());
        }
        let belongs = |pid| Some((pid, self.keepers.belongs(pid)?.0));
        let members: BTreeMap<_, _> = processes
            .iter()
            .filter_map(|(pid, _)| belongs(*pid))
            .collect();
        self.members.extend(members.keys());
        members
    }

    /// Processes of a job that hold GPU memory without having introduced themselves.
    fn find_uninstrumented(&mut self, processes: &[(u32, u64)], members: &BTreeMap<u32, JobId>) {
        for (pid, bytes) in processes {
            if *bytes == 0 || self.processes.iter().any(|(key, _)| key.pid == *pid) {
                continue;
            }
            let Some(job) = members.get(pid).copied() else {
                continue;
            };
            let Some(process) = identify(*pid) else {
                continue;
            };
            if self.uninstrumented.insert(process, job).is_none() {
                warn!(%job, pid, bytes, "a process uses the GPU without the shim");
                self.feed(Event::ProcessUninstrumented { job, process });
            }
        }
    }

    /// Reads every ledger, tells the core what changed, and shows the processes a heartbeat.
    pub(super) fn read_ledgers(&mut self) {
        self.look_at_host();
        self.processes.heartbeat(monotonic_ns());
        for key in self.processes.keys() {
            self.read_ledger(key);
        }
        let known = self.uninstrumented.keys().copied();
        let gone = known.filter(|key| !is_alive(*key)).collect::<Vec<_>>();
        for process in gone {
            if let Some(job) = self.uninstrumented.remove(&process) {
                self.feed(Event::ProcessGone { job, process });
            }
        }
    }

    /// Reads one ledger and tells the core if it has something new.
    pub(super) fn read_ledger(&mut self, key: ProcessKey) {
        let now = self.clock.now();
        let allowance = self.policy.context_reserve;
        let proofs = self.proofs(key);
        let machine = &self.machine;
        let Some(process) = self.processes.get_mut(key) else {
            return;
        };
        let read = process.ledger.read().unwrap_or_else(|error| {
            // NVML's figures still bound what the process can hide.
            debug!(pid = key.pid, %error, "ledger");
            LedgerSnapshot::default()
        });
        let capacity_of = |uuid: &GpuUuid| Some(by_uuid(machine, uuid)?.memory);
        let snapshot = sanitise(process.last.as_ref(), read, capacity_of, &proofs, allowance);
        let launches = snapshot.launches.total();
        let before = process
            .last
            .as_ref()
            .map_or(0, |last| last.launches.total());
        let launched = launches > before;
        if launched {
            process.moved = Some(now);
        }
        let gpus = account(&snapshot, machine, &proofs);
        process.last = Some(snapshot);
        let job: JobId = process.job;
        let held = gpus.iter().filter(|line| line.used > 0);
        self.uses
            .seen(now, job, held.map(|line| line.gpu), launched);
        let news = process.told.as_ref().is_none_or(|told| {
            told.gpus != gpus
                || (told.launches == 0) != (launches == 0)
                || (told.launches != launches && now.millis_since(told.at) >= REPEAT_MS)
        });
        if news {
            process.told = Some(Told {
                at: now,
                launches,
                gpus: gpus.clone(),
            });
            self.feed(Event::Usage {
                job,
                process: key,
                launches,
                gpus,
            });
        }
    }

    /// What NVML attributes to a process.
    pub(super) fn proofs(&self, key: ProcessKey) -> Vec<Proof> {
        let proofs = self.machine.iter().filter_map(|gpu| {
            Some(Proof {
                uuid: gpu.uuid_bytes,
                bytes: *self.attributed.get(&(key, gpu.index))?,
            })
        });
        proofs.collect()
    }
}

/// A ledger in the core's terms.
fn account(snapshot: &LedgerSnapshot, machine: &[GpuFound], proofs: &[Proof]) -> Vec<ProcessGpu> {
    let lines = snapshot.gpus.iter().filter_map(|line| {
        let proof = proofs.iter().find(|proof| proof.uuid == line.uuid);
        Some(ProcessGpu {
            gpu: by_uuid(machine, &line.uuid)?.index,
            used: line.used,
            inflight: line.inflight,
            nvml: proof.map(|proof| proof.bytes),
            refusal: snapshot.open_refusal(&line.uuid),
        })
    });
    lines.collect()
}

/// The GPU of that UUID.
pub(super) fn by_uuid<'a>(machine: &'a [GpuFound], uuid: &GpuUuid) -> Option<&'a GpuFound> {
    machine.iter().find(|gpu| gpu.uuid_bytes == *uuid)
}

/// The GPU of that index.
pub(super) fn by_index(machine: &[GpuFound], index: GpuIndex) -> Option<&GpuFound> {
    machine.iter().find(|gpu| gpu.index == index)
}
