//! `aegis explain`.

use aegis_common::id::JobId;
use aegis_common::wire::{Failure, Response};

use crate::owner::Owner;

/// Why a job is where it is.
pub(crate) fn handle(owner: &mut Owner, job: JobId) -> Result<Response, Failure> {
    let view = owner.view(job)?;
    Ok(Response::Explained(owner.explanation(&view)))
}
