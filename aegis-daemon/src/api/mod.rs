//! Serving clients on the Unix socket: one file per verb.

pub(crate) mod cancel;
mod caps;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod gpus;
pub(crate) mod inspect;
pub(crate) mod queue;
mod server;
pub(crate) mod status;
pub(crate) mod submit;

use aegis_common::wire::{ErrorCode, Failure};

pub use server::{BindError, Server};

/// A failure without a hint.
pub(crate) fn failure(code: ErrorCode, message: &str) -> Failure {
    Failure {
        code,
        message: message.to_owned(),
        hint: None,
        job: None,
    }
}
