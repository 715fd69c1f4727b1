//! Telemetry and ledger readings on their way to the core.

use aegis_common::event::{Event, Gpu, ProcessGpu};
use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use tracing::{error, info, warn};

use super::Owner;
use crate::lease::LedgerSnapshot;
use crate::sys::time::monotonic_ns;
use crate::telemetry::{GpuFound, RawSample, TelemetryEvent, attribute};

/// An unchanged account is repeated to the core at most this often, so that it knows that
/// launches go on without the journal growing by every reading.
const REPEAT_MS: u64 = 10_000;

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
            TelemetryEvent::Gpus(found) => self.machine_found(found),
            TelemetryEvent::Sample(raw) => self.sampled(raw),
            TelemetryEvent::Unavailable { error } => {
                if self.telemetry_error.as_ref() != Some(&error) {
                    error!(%error, "no telemetry: nothing is placed next to a running job");
                    self.telemetry_error = Some(error);
                }
            }
        }
    }

    fn machine_found(&mut self, found: Vec<GpuFound>) {
        self.telemetry_error = None;
        if found == self.machine {
            return;
        }
        info!(gpus = found.len(), "machine");
        self.machine = found;
        let gpus = self.machine.iter().map(|gpu| Gpu {
            index: gpu.index,
            uuid: gpu.uuid.clone(),
            name: gpu.name.clone(),
            memory: gpu.memory,
            tier: gpu.tier,
        });
        let gpus = gpus.collect();
        self.feed(Event::MachineFound { gpus });
    }

    fn sampled(&mut self, raw: RawSample) {
        let gpu = raw.gpu;
        if let Some(processes) = &raw.processes {
            self.attributed.retain(|(_, at), _| *at != gpu);
            for (pid, bytes) in processes {
                let known = self.processes.iter().find(|(key, _)| key.pid == *pid);
                if let Some((key, _)) = known {
                    self.attributed.insert((*key, gpu), *bytes);
                }
            }
            self.find_uninstrumented(processes);
        }
        let keepers = &self.keepers;
        let sample = attribute(raw, |pid| keepers.belongs(pid).map(|(job, _)| job));
        self.feed(Event::Sampled { sample });
    }

    /// Processes of a job that hold GPU memory without having introduced themselves.
    fn find_uninstrumented(&mut self, processes: &[(u32, u64)]) {
        for (pid, bytes) in processes {
            if *bytes == 0 || self.processes.iter().any(|(key, _)| key.pid == *pid) {
                continue;
            }
            let Some((job, _)) = self.keepers.belongs(*pid) else {
                continue;
            };
            let Some(process) = crate::jobs::process_key(*pid) else {
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
        self.processes.heartbeat(monotonic_ns());
        for key in self.processes.keys() {
            self.read_ledger(key);
        }
        let gone = |key: &ProcessKey| crate::jobs::process_key(key.pid) != Some(*key);
        let gone = self
            .uninstrumented
            .keys()
            .copied()
            .filter(gone)
            .collect::<Vec<_>>();
        for process in gone {
            if let Some(job) = self.uninstrumented.remove(&process) {
                self.feed(Event::ProcessGone { job, process });
            }
        }
    }

    /// Reads one ledger and tells the core if it has something new.
    pub(super) fn read_ledger(&mut self, key: ProcessKey) {
        let now = self.clock.now();
        let machine = &self.machine;
        let attributed = &self.attributed;
        let allowance = self.policy.context_reserve;
        let Some(process) = self.processes.get_mut(key) else {
            return;
        };
        let capacity = |uuid: &_| {
            machine
                .iter()
                .find(|gpu| gpu.uuid_bytes == *uuid)
                .map(|gpu| gpu.memory)
        };
        let proven = |uuid: &_| {
            let gpu = machine.iter().find(|gpu| gpu.uuid_bytes == *uuid)?;
            let bytes = attributed.get(&(key, gpu.index))?;
            Some(bytes.saturating_sub(allowance))
        };
        let snapshot = process
            .ledger
            .read_plausible(process.last.as_ref(), capacity, proven);
        let launches = snapshot.launches();
        if process
            .last
            .as_ref()
            .is_none_or(|last| launches > last.launches())
            && launches > 0
        {
            process.moved = Some(now);
        }
        let gpus = account(&snapshot, machine, |gpu| {
            attributed.get(&(key, gpu)).copied()
        });
        process.last = Some(snapshot);
        let job: JobId = process.job;
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
}

/// A ledger in the core's terms.
fn account(
    snapshot: &LedgerSnapshot,
    machine: &[GpuFound],
    nvml: impl Fn(GpuIndex) -> Option<u64>,
) -> Vec<ProcessGpu> {
    let launches = snapshot.launches();
    let lines = snapshot.gpus.iter().filter_map(|line| {
        let gpu = machine.iter().find(|gpu| gpu.uuid_bytes == line.uuid)?;
        let final_refusal = line.unrecovered && line.launches_at_refusal == launches;
        Some(ProcessGpu {
            gpu: gpu.index,
            used: line.used,
            inflight: line.inflight,
            nvml: nvml(gpu.index),
            refusal: final_refusal.then_some(line.episode_bytes),
        })
    });
    lines.collect()
}
