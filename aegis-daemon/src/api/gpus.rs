//! `aegis gpus`.

use aegis_common::wire::{Failure, Response};

use crate::owner::Owner;

/// The GPUs and who is on them.
pub(crate) fn handle(owner: &mut Owner) -> Result<Response, Failure> {
    Ok(Response::Gpus { gpus: owner.gpus() })
}
