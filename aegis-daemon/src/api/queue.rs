//! `aegis queue`.

use aegis_common::job::JobState;
use aegis_common::wire::{ErrorCode, Failure, QueueView, Response};

use crate::owner::Owner;

/// Finished jobs listed unless the client says otherwise.
const FINISHED_DEFAULT: u32 = 100;

/// Live jobs, and with `all` the finished ones.
pub(crate) fn handle(
    owner: &mut Owner,
    all: bool,
    uid: Option<u32>,
    limit: Option<u32>,
) -> Result<Response, Failure> {
    let mut jobs = owner.live_views();
    let pending = jobs
        .iter()
        .filter(|job| job.state == JobState::Pending)
        .count();
    let running = jobs.len() - pending;
    jobs.retain(|job| uid.is_none_or(|uid| job.uid == uid));
    let explainer = owner.explainer();
    for job in &mut jobs {
        if job.state == JobState::Pending {
            let first = explainer.first(job.id);
            job.waits_for = first.map(|blocker| blocker.to_string());
        }
    }
    if all {
        // Over, but not yet on disk.
        let unwritten = owner.ended_views();
        jobs.extend(unwritten.filter(|job| uid.is_none_or(|uid| job.uid == uid)));
        let finished = owner
            .store()
            .finished(uid, limit.unwrap_or(FINISHED_DEFAULT));
        jobs.extend(finished.map_err(|error| Failure::new(ErrorCode::Storage, error.to_string()))?);
    }
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Ok(Response::Queue(QueueView {
        jobs,
        pending: count(pending),
        running: count(running),
    }))
}
