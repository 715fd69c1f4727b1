//! Runs of refusals.
//!
//! A framework that is refused memory frees its caches and asks again, so one real shortage shows
//! as two or three refusals: an *episode*. It is over when a request of at least its size succeeds.
#![forbid(unsafe_code)]

use core::sync::atomic::Ordering;

use aegis_common::abi::ledger::GpuLine;

/// Who refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refuser {
    /// The driver itself.
    Driver,
    /// This library, on the daemon's terms.
    Shim,
}

/// Notes a refusal of `bytes`. Returns whether it begins an episode.
pub fn refuse(line: &GpuLine, refuser: Refuser, bytes: u64, now_ns: u64, launches: u64) -> bool {
    let counter = match refuser {
        Refuser::Driver => &line.driver_ooms,
        Refuser::Shim => &line.denials,
    };
    counter.fetch_add(1, Ordering::Relaxed);
    line.launches_at_refusal.store(launches, Ordering::Relaxed);
    line.last_refusal_ns.store(now_ns, Ordering::Relaxed);
    let begins = line.unrecovered.swap(1, Ordering::AcqRel) == 0;
    if begins {
        line.episode_bytes.store(bytes, Ordering::Relaxed);
        line.episodes.fetch_add(1, Ordering::Relaxed);
    }
    begins
}

/// Whether an episode is open.
#[must_use]
pub fn open(line: &GpuLine) -> bool {
    line.unrecovered.load(Ordering::Relaxed) != 0
}

/// Notes that a request of `bytes` succeeded: it ends an episode that began with no more.
pub fn succeed(line: &GpuLine, bytes: u64) {
    if open(line) && bytes >= line.episode_bytes.load(Ordering::Relaxed) {
        line.unrecovered.store(0, Ordering::Relaxed);
    }
}
