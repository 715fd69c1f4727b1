//! Runs real processes with the shim preloaded against a fake driver.
//!
//! The fake driver and the client are C programs under `fixtures/`, compiled once per test run; the
//! shim is built by cargo. [`daemon::FakeDaemon`] speaks the daemon's side of the socket.

pub mod build;
pub mod client;
pub mod daemon;
pub mod sys;
