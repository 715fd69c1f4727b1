//! Views as text. Everything here is pure: view and style in, text out.

pub(super) mod explanation;
#[cfg(test)]
mod golden;
pub(super) mod gpu;
pub(super) mod history;
pub(super) mod idle;
pub(super) mod job;
pub(super) mod ledger;
pub(super) mod queue;
pub(super) mod replay;
#[cfg(test)]
pub(super) mod samples;
pub(super) mod shell;
mod slowdown;
pub(super) mod state;
pub(super) mod table;
pub(super) mod time;
