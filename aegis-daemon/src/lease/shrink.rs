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
    use std::mem::offset_of;
    use std::sync::Barrier;

    use aegis_common::abi::lease::UNLIMITED;
    use aegis_common::abi::ledger::{GPU_LINES_OFFSET, GpuLine, LEDGER_BYTES, LedgerHeader};
    use aegis_common::id::{JobId, ProcessKey};
    use proptest::prelude::*;

    use super::super::ledger::LedgerFile;
    use super::super::name::LeaseName;
    use super::super::page::LeaseLineView;
    use super::*;
    use crate::sys::shm::SharedPage;

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

    #[test]
    fn a_request_racing_with_a_shrink_never_gets_what_was_given_back() {
        const OLD: u64 = 1000;
        const NEW: u64 = 300;
        const REQUEST: u64 = 600;
        const UUID: [u8; 16] = [1; 16];
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
            uuid: UUID,
            limit: OLD,
            virtual_total: 0,
            flags: 0,
        };
        page.set_line(0, line).unwrap();
        let ledger = LedgerFile::create(&name.ledger()).unwrap();
        // The process's view of the ledger.
        let memory = SharedPage::map(ledger.try_clone().unwrap().into(), LEDGER_BYTES).unwrap();
        let lines = memory.u32_at(offset_of!(LedgerHeader, gpu_lines)).unwrap();
        for half in [0, 8] {
            let word = memory.u64_at(GPU_LINES_OFFSET + half).unwrap();
            word.store(u64::from_ne_bytes([1; 8]), Ordering::SeqCst);
        }
        lines.store(1, Ordering::SeqCst);
        let inflight = memory
            .u64_at(GPU_LINES_OFFSET + offset_of!(GpuLine, inflight))
            .unwrap();
        let held = || {
            let snapshot = ledger.read().ok()?;
            let gpu = snapshot.gpu(&UUID)?;
            Some(gpu.used + gpu.inflight)
        };
        let mut outcomes = [0; 2];
        let mut rounds = 0;
        // Both orders must have happened for this to mean anything.
        while rounds < 1000 || outcomes.contains(&0) {
            rounds += 1;
            assert!(
                rounds < 1_000_000,
                "one order never came about: {outcomes:?}"
            );
            page.set_limit(0, OLD).unwrap();
            inflight.store(0, Ordering::SeqCst);
            let start = Barrier::new(2);
            let (granted, back) = std::thread::scope(|scope| {
                let shim = scope.spawn(|| {
                    start.wait();
                    let wanted = inflight.fetch_add(REQUEST, Ordering::SeqCst) + REQUEST;
                    let granted = page.limit(0).is_some_and(|limit| wanted <= limit);
                    if !granted {
                        inflight.fetch_sub(REQUEST, Ordering::SeqCst);
                    }
                    granted
                });
                start.wait();
                let back = shrink(&page, 0, NEW, held).unwrap();
                (shim.join().unwrap(), back)
            });
            let taken = if granted { REQUEST } else { 0 };
            assert!(
                back + taken <= OLD,
                "gave back {back} while {taken} were taken"
            );
            outcomes[usize::from(granted)] += 1;
        }
    }
}
