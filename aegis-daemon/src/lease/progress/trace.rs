//! Reading one thread's trace. Its writer can put anything there: the worst that comes of it is a
//! wrong pace of that process.

use std::mem::offset_of;

use aegis_common::abi::trace::{TRACE_ENTRIES, TRACES, TRACES_OFFSET, Trace as Layout};

use super::super::ledger::LedgerFile;
use super::super::snapshot::{LedgerError, u64_at};

/// What a thread launched last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Launches so far.
    pub marks: u64,
    /// Wrapping sum of them.
    pub sum: u64,
    /// The last ones, oldest first; at most one less than [`TRACE_ENTRIES`].
    pub launches: Vec<u64>,
}

impl Trace {
    /// From a copy of the memory. Entries that were or may have been written after `marks` was
    /// `before`, up to its value `after` the copy, are left out.
    #[must_use]
    pub fn decode(bytes: &[u8], before: u64, after: u64) -> Self {
        let entries = TRACE_ENTRIES as u64;
        // The entry after `after` may be half written: it takes the place of the oldest.
        let oldest = after.saturating_add(1).saturating_sub(entries);
        let oldest = oldest.max(before.saturating_sub(entries));
        let sums = (oldest..before).map(|mark| {
            let slot = usize::try_from(mark % entries).unwrap_or(0);
            u64_at(bytes, offset_of!(Layout, entries) + slot * size_of::<u64>())
        });
        let sums: Vec<u64> = sums.collect();
        let launches = sums.iter().zip(sums.iter().skip(1));
        Self {
            marks: before,
            sum: sums.last().copied().unwrap_or(0),
            launches: launches
                .map(|(sum, next)| next.wrapping_sub(*sum))
                .collect(),
        }
    }
}

impl LedgerFile {
    /// How much each thread has traced, by trace; nothing from the ledger of an older daemon.
    #[must_use]
    pub fn marks(&self) -> Vec<u64> {
        (0..TRACES)
            .map_while(|slot| self.marks_of(slot).ok())
            .collect()
    }

    /// One thread's trace.
    ///
    /// # Errors
    /// [`LedgerError::Torn`] if there is none, [`LedgerError::Io`] if the kernel refuses.
    pub fn trace(&self, slot: usize) -> Result<Trace, LedgerError> {
        let before = self.marks_of(slot)?;
        let bytes = self.copy(offset(slot), size_of::<Layout>())?;
        let after = self.marks_of(slot)?;
        Ok(Trace::decode(&bytes, before, after))
    }

    fn marks_of(&self, slot: usize) -> Result<u64, LedgerError> {
        let at = offset(slot) + offset_of!(Layout, marks);
        Ok(u64_at(&self.copy(at, size_of::<u64>())?, 0))
    }
}

const fn offset(slot: usize) -> usize {
    TRACES_OFFSET + slot * size_of::<Layout>()
}
