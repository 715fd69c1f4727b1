//! `aegis status`.

use aegis_common::id::JobId;
use aegis_common::job::JobState;
use aegis_common::wire::{Failure, Response};

use crate::owner::Owner;

/// One job.
pub(crate) fn handle(owner: &mut Owner, job: JobId) -> Result<Response, Failure> {
    let mut view = owner.view(job)?;
    if view.state == JobState::Pending {
        view.waits_for = owner
            .explainer()
            .first(job)
            .map(|blocker| blocker.to_string());
    }
    Ok(Response::Status {
        job: Box::new(view),
    })
}
