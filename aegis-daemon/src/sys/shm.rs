//! One page of memory shared with a process that only reads it.
//!
//! The daemon is the only writer (every byte has one writer), so plain atomics suffice. No
//! reference to the bytes themselves is ever formed, only to single atomics.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64};

use memmap2::{MmapOptions, MmapRaw};

/// A writable mapping of the first [`SharedPage::len`] bytes of a file.
///
/// Touching a mapping beyond the end of its file raises SIGBUS, so the file must not be shortened
/// while this lives: callers back it with [`rustix::fs::fallocate`] and keep it where only the
/// daemon's user can write, and [`SharedPage::intact`] tells of accidents.
#[derive(Debug)]
pub struct SharedPage {
    map: MmapRaw,
    file: File,
}

impl SharedPage {
    /// Maps `len` bytes of `file` for reading and writing.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the file is shorter than `len`; else whatever `fstat` or `mmap` report.
    pub fn map(file: File, len: usize) -> io::Result<Self> {
        if file.metadata()?.len() < len as u64 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("shorter than {len} bytes"),
            ));
        }
        let map = MmapOptions::new().len(len).map_raw(&file)?;
        Ok(Self { map, file })
    }

    /// Bytes mapped.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether nothing is mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the file still backs the whole mapping.
    #[must_use]
    pub fn intact(&self) -> bool {
        self.file
            .metadata()
            .is_ok_and(|metadata| metadata.len() >= self.len() as u64)
    }

    /// The file behind the mapping.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The 64-bit word at byte `offset`; `None` if it is misaligned or not inside the mapping.
    #[must_use]
    pub fn u64_at(&self, offset: usize) -> Option<&AtomicU64> {
        let pointer = self.pointer::<AtomicU64>(offset)?;
        // SAFETY: `pointer` checked that the word lies inside the mapping and is aligned; the
        // mapping lives as long as `self`; no non-atomic access to it exists in this process (no
        // other accessor forms references), and the other process only reads.
        Some(unsafe { AtomicU64::from_ptr(pointer.cast()) })
    }

    /// The 32-bit word at byte `offset`; `None` if it is misaligned or not inside the mapping.
    #[must_use]
    pub fn u32_at(&self, offset: usize) -> Option<&AtomicU32> {
        let pointer = self.pointer::<AtomicU32>(offset)?;
        // SAFETY: as in `u64_at`.
        Some(unsafe { AtomicU32::from_ptr(pointer.cast()) })
    }

    fn pointer<T>(&self, offset: usize) -> Option<*mut u8> {
        let end = offset.checked_add(size_of::<T>())?;
        // The mapping starts at a page boundary, so the offset decides the alignment.
        if end > self.len() || !offset.is_multiple_of(align_of::<T>()) {
            return None;
        }
        Some(self.map.as_mut_ptr().wrapping_add(offset))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn words_reach_the_file_and_nothing_outside_is_reachable() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let page = SharedPage::map(file.try_clone().unwrap(), 4096).unwrap();
        page.u64_at(8).unwrap().store(7, Ordering::SeqCst);
        let mut bytes = Vec::new();
        (&file).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.get(8..16), Some(&7u64.to_ne_bytes()[..]));
        for bad in [4, 4092, 4096, usize::MAX - 7] {
            assert!(page.u64_at(bad).is_none(), "{bad}");
        }
        assert!(page.u32_at(4092).is_some());
        assert!(page.intact());
        file.set_len(100).unwrap();
        assert!(!page.intact());
        assert!(SharedPage::map(file, 4096).is_err());
    }
}
