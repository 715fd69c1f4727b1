//! Carrying out the core's actions.

use aegis_common::action::{Action, GrowAnswer};
use aegis_common::event::Event;
use aegis_common::id::{GpuIndex, JobId, ProcessKey};
use tracing::{error, info, warn};

use super::Owner;
use super::sample::by_index;
use crate::jobs::StartOrder;

/// Refusals remembered per job for `aegis explain`.
const REFUSALS_KEPT: usize = 20;

impl Owner {
    pub(super) fn perform(&mut self, action: Action) {
        match action {
            Action::Start {
                job,
                attempt,
                gpus,
                virtual_total,
            } => {
                self.start(job, attempt, gpus, virtual_total);
            }
            Action::Stop {
                job,
                attempt,
                why,
                how,
            } => {
                info!(%job, attempt, %why, ?how, "stopping");
                self.keepers.stop(job, attempt, how);
            }
            // It went to the disk with its event, see `settle`.
            Action::Learn { .. } => {}
            Action::SetLease {
                process,
                gpu,
                limit,
                oldest,
            } => {
                self.set_lease(process, gpu, limit, oldest);
            }
            Action::Answer { request, answer } => self.answer(request, &answer),
            Action::Finish { job, outcome } => {
                info!(%job, ?outcome, "over");
                for attempt in self.core.job(job).into_iter().flat_map(|job| job.attempts) {
                    self.keepers.forget(job, attempt.number);
                }
                self.core.forget(job);
                self.records.remove(&job);
                self.refusals.remove(&job);
                self.virtual_totals.remove(&job);
                self.uses.forget(job);
                self.notify_waiters();
            }
            Action::Retry { job, attempt, why } => {
                info!(%job, attempt, %why, "another attempt follows");
                self.uses.forget(job);
                // Its end is on disk. A later daemon must not look for what it left behind: the
                // next attempt carries the same token.
                self.keepers.forget(job, attempt.saturating_sub(1));
            }
            Action::WakeAt { at } => self.wake_at = Some(at),
        }
    }

    fn start(&mut self, job: JobId, attempt: u32, gpus: Vec<GpuIndex>, virtual_total: Option<u64>) {
        let record = match self.whole_record(job) {
            Ok(record) => record,
            Err(error) => {
                error!(%job, error, "a job without its record cannot be started");
                self.feed(Event::StartFailed {
                    job,
                    attempt,
                    error,
                });
                return;
            }
        };
        match virtual_total {
            Some(total) => self.virtual_totals.insert(job, total),
            None => self.virtual_totals.remove(&job),
        };
        let gpu_uuids = gpus
            .iter()
            .filter_map(|gpu| self.machine.iter().find(|found| found.index == *gpu))
            .map(|found| found.uuid.clone())
            .collect::<Vec<_>>();
        if gpu_uuids.len() != gpus.len() {
            // The core starts jobs only on GPUs of the last count, so a GPU was lost this instant;
            // the next count moves the job on.
            warn!(%job, ?gpus, "a GPU of the placement is unknown");
        }
        info!(%job, attempt, ?gpus, "starting");
        self.keepers.start(StartOrder {
            job,
            attempt,
            record: &record,
            gpu_uuids: &gpu_uuids,
            gpus: &gpus,
            resumed: self.ran_before(job).is_some(),
        });
    }

    fn set_lease(&self, key: ProcessKey, gpu: GpuIndex, limit: u64, oldest: bool) {
        let Some(process) = self.processes.get(key) else {
            return;
        };
        let Some(found) = by_index(&self.machine, gpu) else {
            return;
        };
        if let Err(error) = process.set_lease(&found.uuid_bytes, limit, oldest) {
            error!(pid = key.pid, %gpu, %error, "a lease could not be written");
        }
    }

    fn answer(&mut self, request: u64, answer: &GrowAnswer) {
        if let GrowAnswer::Denied { why } = answer
            && let Some(job) = self.grow_jobs.get(&request).copied()
        {
            info!(%job, %why, "allocation refused");
            let refusals = self.refusals.entry(job).or_default();
            refusals.push(format!("allocation refused: {why}"));
            if refusals.len() > REFUSALS_KEPT {
                refusals.remove(0);
            }
        }
        if let GrowAnswer::Wait { wait_ms } = answer {
            if let Some(reply) = self.grows.get_mut(&request) {
                // A requester that hung up reports itself as abandoned.
                let _ = reply.wait(*wait_ms);
            }
            self.refresh_samples();
            return;
        }
        self.grow_jobs.remove(&request);
        let Some(reply) = self.grows.remove(&request) else {
            return;
        };
        // As above: whoever hung up is reported by the connection.
        let _ = match answer {
            GrowAnswer::Granted { limit } => reply.grant(*limit),
            _ => reply.deny(0),
        };
    }
}
