//! Serving clients on the Unix socket: one file per verb.

mod cancel;
mod caps;
mod dispatch;
mod doctor;
mod explain;
mod gpus;
mod history;
mod inspect;
mod queue;
mod server;
mod status;
mod submit;

pub use server::{BindError, Server};
