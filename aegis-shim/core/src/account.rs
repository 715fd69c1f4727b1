//! Arithmetic on one GPU's ledger line.
//!
//! A request is *reserved* (raises `inflight`), then either *committed* (moves to `used`) or
//! *withdrawn*. `used` rises before `inflight` falls, so their sum never understates what the
//! process may hold, whenever the daemon looks.
#![forbid(unsafe_code)]

use core::sync::atomic::Ordering;

use aegis_common::abi::ledger::{GpuLine, Kind, LaunchLine};

/// Requests are accounted up to this size, so that sums cannot wrap; no GPU holds 64 TiB.
pub const LARGEST_BYTES: u64 = 1 << 46;

/// One GPU's account in this process.
#[derive(Clone, Copy)]
pub struct Account<'a>(pub &'a GpuLine);

impl Account<'_> {
    /// Raises `inflight` and returns what the process then holds and asks for.
    pub fn reserve(&self, bytes: u64) -> u64 {
        // SeqCst: the daemon lowers a limit, then reads this line; we raise this line, then read
        // the limit. One of the two sees the other (contract C1).
        self.0
            .inflight
            .fetch_add(bytes.min(LARGEST_BYTES), Ordering::SeqCst);
        self.held()
    }

    /// Takes a reservation back.
    pub fn withdraw(&self, bytes: u64) {
        self.0
            .inflight
            .fetch_sub(bytes.min(LARGEST_BYTES), Ordering::SeqCst);
    }

    /// Turns a reservation of `reserved` bytes into `bytes` held.
    pub fn commit(&self, kind: Kind, reserved: u64, bytes: u64) {
        if let Some(used) = self.0.used.get(kind as usize) {
            used.fetch_add(bytes.min(LARGEST_BYTES), Ordering::SeqCst);
        }
        self.0
            .inflight
            .fetch_sub(reserved.min(LARGEST_BYTES), Ordering::SeqCst);
        self.0.allocs.fetch_add(1, Ordering::Relaxed);
        let used = self.used();
        if used > self.0.peak.load(Ordering::Relaxed) {
            self.0.peak.fetch_max(used, Ordering::Relaxed);
        }
    }

    /// A block was given back.
    pub fn release(&self, kind_index: usize, bytes: u64) {
        if let Some(used) = self.0.used.get(kind_index) {
            used.fetch_sub(bytes.min(LARGEST_BYTES), Ordering::SeqCst);
        }
        self.0.frees.fetch_add(1, Ordering::Relaxed);
    }

    /// Bytes held now, all kinds.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.0
            .used
            .iter()
            .map(|used| used.load(Ordering::SeqCst))
            .sum()
    }

    /// Bytes held and asked for now, rather too many than too few while others commit.
    #[must_use]
    pub fn held(&self) -> u64 {
        // `inflight` first: a block that moves from it to `used` in between is seen twice. In the
        // other order it would not be seen at all, and the limit could be overshot.
        let inflight = self.0.inflight.load(Ordering::SeqCst);
        inflight.saturating_add(self.used())
    }
}

/// All that the process launched, of all kinds and on all lines: what
/// [`GpuLine::launches_at_refusal`] keeps, and what a reader compares it with.
pub fn launches<'a>(lines: impl Iterator<Item = &'a LaunchLine>) -> u64 {
    lines
        .flat_map(|line| {
            [
                &line.kernels,
                &line.graphs,
                &line.copies,
                &line.memsets,
                &line.host_functions,
            ]
        })
        .fold(0, |sum, count| {
            sum.wrapping_add(count.load(Ordering::Relaxed))
        })
}
