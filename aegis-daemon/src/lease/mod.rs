//! Ledgers, lease pages and the shim socket: the daemon's side of [`aegis_common::abi`].
//!
//! ```text
//!   ShimServer --ShimEvent--> owner --HelloReply/GrowReply--> shim
//!   LedgerFile --LedgerSnapshot--> sanitise --> owner          (hostile until sanitised)
//!   LedgerFile --Trace--> progress::Tracker --> owner           (likewise; a pace or nothing)
//!   owner --set_line/shrink--> LeasePage                       (read-only to the process)
//! ```
//!
//! In root mode another user's process can neither write its lease page nor reopen it. In rootless
//! mode job and daemon are the same user: there the page protects against accidents only.
#![forbid(unsafe_code)]

mod caps;
mod connection;
mod event;
#[cfg(test)]
mod hostile_tests;
pub mod inspect;
mod ledger;
mod listener;
mod name;
mod page;
mod peer;
mod process;
pub mod progress;
mod reply;
mod sanitise;
mod server;
#[cfg(test)]
mod shim_tests;
mod shrink;
mod snapshot;
pub mod uuid;

pub use caps::ShimLimits;
pub use connection::ShimCounts;
pub use event::{ShimEvent, Token};
pub use inspect::held_ledgers;
pub use ledger::LedgerFile;
pub use name::{BadLeaseName, LeaseName};
pub use page::{LeaseError, LeaseLineView, LeasePage, monotonic_ns};
pub use peer::ShimPeer;
pub use process::{command, effective_uid, is_alive, open_process, start_ticks, wait_exit};
pub use reply::{GrowReply, HelloReply};
pub use sanitise::{Proof, sanitise};
pub use server::ShimServer;
pub use shrink::{reclaimable, shrink};
pub use snapshot::{Launches, LedgerError, LedgerGpuSnapshot, LedgerSnapshot};
