//! Processes of running attempts: come, launch, report, go.

use aegis_common::action::Action;
use aegis_common::event::ProcessGpu;
use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use aegis_common::reason::Denial;

use super::core::Core;
use super::process::Process;

impl Core {
    /// A process introduced itself, or was found without having done so. One that executed another
    /// program comes again after it went.
    pub(super) fn attached(
        &mut self,
        id: JobId,
        key: ProcessKey,
        instrumented: bool,
        out: &mut Vec<Action>,
    ) {
        let run = self.jobs.get_mut(&id).and_then(|job| job.run.as_mut());
        if let Some(run) = run {
            run.gone.remove(&key);
        }
        self.attach(id, key, instrumented, out);
    }

    /// Makes sure that a process is known, unless it is gone.
    pub(super) fn attach(
        &mut self,
        id: JobId,
        key: ProcessKey,
        instrumented: bool,
        out: &mut Vec<Action>,
    ) {
        let run = self.jobs.get_mut(&id).and_then(|job| job.run.as_mut());
        let Some(run) = run.filter(|run| !run.gone.contains(&key)) else {
            return;
        };
        if let Some(process) = run.process_mut(key) {
            if process.instrumented || !instrumented {
                return;
            }
            process.instrumented = true;
        } else {
            let gpus: Vec<GpuIndex> = run.holds.iter().map(|hold| hold.gpu).collect();
            run.processes.push(Process::new(key, instrumented, &gpus));
        }
        if instrumented {
            for hold in &run.holds {
                out.push(Action::SetLease {
                    process: key,
                    gpu: hold.gpu,
                    limit: 0,
                    oldest: false,
                });
            }
        }
    }

    /// A process is gone: its sub-leases return to its job's budgets.
    pub(super) fn process_gone(&mut self, id: JobId, key: ProcessKey, out: &mut Vec<Action>) {
        let run = self.jobs.get_mut(&id).and_then(|job| job.run.as_mut());
        let Some(run) = run else { return };
        run.gone.insert(key);
        let position = run.processes.iter().position(|process| process.key == key);
        if let Some(position) = position {
            let process = run.processes.remove(position);
            for line in process.lines {
                if let Some(request) = line.refusal {
                    run.refusals.push((line.gpu, request));
                }
                let measured = self
                    .gpus
                    .get(&line.gpu)
                    .is_some_and(|gpu| gpu.used.is_some());
                if let Some(hold) = run.hold_mut(line.gpu).filter(|_| measured) {
                    hold.departed = hold.departed.saturating_add(line.used);
                }
            }
        }
        self.deny_waiting(id, Some(key), &Denial::NotHeld, out);
    }

    /// A process launched for the first time.
    pub(super) fn first_launch(
        &mut self,
        at: Moment,
        id: JobId,
        key: ProcessKey,
        out: &mut Vec<Action>,
    ) {
        self.attach(id, key, true, out);
        let run = self.jobs.get_mut(&id).and_then(|job| job.run.as_mut());
        let Some(run) = run else { return };
        if let Some(process) = run.process_mut(key)
            && !process.launched
        {
            process.launched = true;
            run.observation.launched(at, true);
        }
    }

    /// A process's ledger was read.
    pub(super) fn usage(
        &mut self,
        at: Moment,
        id: JobId,
        key: ProcessKey,
        launches: u64,
        gpus: &[ProcessGpu],
        out: &mut Vec<Action>,
    ) {
        self.attach(id, key, true, out);
        let run = self.jobs.get_mut(&id).and_then(|job| job.run.as_mut());
        let Some(run) = run else { return };
        let Some(process) = run.process_mut(key) else {
            return;
        };
        let more = launches > process.launches;
        let first = more && !process.launched;
        process.launches = launches;
        process.launched |= more;
        for line in &mut process.lines {
            let report = gpus.iter().find(|report| report.gpu == line.gpu);
            let Some(report) = report else { continue };
            // Bytes in flight are within the sub-lease, or belong to a request that is not granted.
            // Only a process found by a new daemon may have them by a lease that is not known: its
            // ledger was read after the limit was lowered.
            let unknown = if line.touched { 0 } else { report.inflight };
            line.touched = true;
            line.used = report.used.saturating_add(unknown);
            line.refusal = report.refusal;
            if let Some(nvml) = report.nvml {
                line.overhead.push(at, nvml.saturating_sub(report.used));
            }
        }
        if more {
            run.observation.launched(at, first);
        }
        let peaks: Vec<(GpuIndex, u64)> = run
            .holds
            .iter()
            .map(|hold| (hold.gpu, run.used(hold.gpu)))
            .collect();
        for (gpu, used) in peaks {
            self.note_peak(at, id, gpu, used);
        }
    }

    /// A job held that much on a GPU.
    pub(super) fn note_peak(&mut self, at: Moment, id: JobId, gpu: GpuIndex, bytes: u64) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        let Some(run) = job.run.as_mut() else { return };
        let Some(hold) = run.hold_mut(gpu).filter(|hold| bytes > hold.peak) else {
            return;
        };
        hold.peak = bytes;
        run.observation.peak_rose(at);
        if let Some(attempt) = job.attempts.last_mut() {
            attempt.peak = attempt.peak.max(bytes);
        }
    }

    /// Writes the flag of the oldest resident where it changed.
    pub(super) fn mark_oldest(&mut self, out: &mut Vec<Action>) {
        for gpu in self.gpus.values() {
            let index = gpu.info.index;
            let residents = gpu.residents.iter().filter_map(|id| self.jobs.get(id));
            let oldest = residents
                .filter(|job| job.first_started.is_some())
                .min_by_key(|job| job.seniority())
                .map(|job| job.id);
            for id in &gpu.residents {
                let run = self.jobs.get_mut(id).and_then(|job| job.run.as_mut());
                for process in run.into_iter().flat_map(|run| run.processes.iter_mut()) {
                    let (key, instrumented) = (process.key, process.instrumented);
                    let Some(line) = process.line_mut(index) else {
                        continue;
                    };
                    let flag = Some(*id) == oldest;
                    if line.oldest != flag && instrumented {
                        line.oldest = flag;
                        out.push(Action::SetLease {
                            process: key,
                            gpu: index,
                            limit: line.sublease,
                            oldest: flag,
                        });
                    }
                }
            }
        }
    }
}
