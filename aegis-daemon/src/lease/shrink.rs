//! Taking memory back from a sub-lease without a lock (contract C1).
//!
//! ```text
//!   daemon                            shim
//!   1. limit := lower   (SeqCst)      1. inflight += n   (SeqCst)
//!   2. read used + inflight           2. read limit      (SeqCst)
//! ```
//!
//! In the one order of all SeqCst operations either the daemon's 1 comes before the shim's 2, and
//! the shim obeys the lower limit; or the shim's 1 comes before the daemon's 2, and the daemon sees
//! the bytes. Nobody can take room that was already given away.

use std::sync::atomic::{Ordering, fence};

use super::page::{LeaseError, LeasePage};

/// Lowers the limit in line `index` to `new`, then asks `held` for `used + inflight` of the process
/// on that GPU (read from the ledger after the call, by [`super::LedgerFile::read`]; at least what
/// NVML proves). Returns the bytes that may now be promised to others.
///
/// `held` giving `None` (the ledger cannot be read) reclaims nothing. A limit is never raised, and
/// an unlimited one gives nothing back, as nothing was promised by it.
///
/// # Errors
///
/// The page cannot be written; nothing was reclaimed.
pub fn shrink(
    page: &LeasePage,
    index: usize,
    new: u64,
    held: impl FnOnce() -> Option<u64>,
) -> Result<u64, LeaseError> {
    let old = page.limit(index).ok_or(LeaseError::NoSuchLine(index))?;
    if new >= old {
        return Ok(0);
    }
    page.set_limit(index, new)?;
    // The read is a system call, which no ordering of atomics covers by itself.
    fence(Ordering::SeqCst);
    Ok(held().map_or(0, |held| reclaimable(old, new, held)))
}

/// What a lowered limit gives back: the process may hold more than its new limit until it frees.
#[must_use]
pub fn reclaimable(old: u64, new: u64, held: u64) -> u64 {
    if old == aegis_common::abi::lease::UNLIMITED {
        return 0;
    }
    old.saturating_sub(new.max(held))
}

#[cfg(test)]
mod tests {
    use aegis_common::abi::lease::UNLIMITED;
    use aegis_common::id::{JobId, ProcessKey};
    use proptest::prelude::*;

    use super::super::name::LeaseName;
    use super::super::page::LeaseLineView;
    use super::*;

    proptest! {
        #[test]
        fn what_is_given_back_is_neither_held_nor_still_allowed(old: u64, new: u64, held: u64) {
            let back = reclaimable(old, new, held);
            prop_assert!(back <= old);
            if old != UNLIMITED {
                prop_assert_eq!(back, old - old.min(new.max(held)));
            }
        }
    }

    #[test]
    fn the_limit_is_lowered_before_the_ledger_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let process = ProcessKey {
            pid: 1,
            start_ticks: 2,
        };
        let name = LeaseName {
            job: JobId(1),
            process,
        };
        let page = LeasePage::create(dir.path(), name).unwrap();
        let line = LeaseLineView {
            uuid: [1; 16],
            limit: 1000,
            virtual_total: 0,
            flags: 0,
        };
        page.set_line(0, line).unwrap();
        let back = shrink(&page, 0, 300, || {
            assert_eq!(page.limit(0), Some(300));
            Some(400)
        });
        assert_eq!(back.unwrap(), 600);
        assert_eq!(shrink(&page, 0, 300, || unreachable!()).unwrap(), 0);
        assert_eq!(shrink(&page, 0, 100, || None).unwrap(), 0);
        assert!(shrink(&page, 1, 0, || Some(0)).is_err());
    }
}
