//! Address ranges, first fit: the same sequence of calls gives the same addresses in each run.

use std::collections::BTreeMap;

/// Free ranges of an address range.
#[derive(Debug)]
pub(crate) struct Arena {
    free: BTreeMap<u64, u64>,
}

impl Arena {
    pub(crate) fn new(base: u64, length: u64) -> Self {
        Self {
            free: BTreeMap::from([(base, length)]),
        }
    }

    /// Takes `length` bytes at a multiple of `alignment` (a power of two).
    pub(crate) fn take(&mut self, length: u64, alignment: u64) -> Option<u64> {
        let (start, size, base) = self.free.iter().find_map(|(&start, &size)| {
            let base = start.checked_next_multiple_of(alignment)?;
            (base - start <= size && size - (base - start) >= length).then_some((start, size, base))
        })?;
        self.split(start, size, base, length);
        Some(base)
    }

    /// Takes exactly `[base, base + length)`, if free.
    pub(crate) fn take_at(&mut self, base: u64, length: u64) -> bool {
        let Some((&start, &size)) = self.free.range(..=base).next_back() else {
            return false;
        };
        if base - start > size || size - (base - start) < length {
            return false;
        }
        self.split(start, size, base, length);
        true
    }

    fn split(&mut self, start: u64, size: u64, base: u64, length: u64) {
        self.free.remove(&start);
        if base > start {
            self.free.insert(start, base - start);
        }
        let rest = start + size - (base + length);
        if rest > 0 {
            self.free.insert(base + length, rest);
        }
    }

    /// Gives a range back.
    pub(crate) fn give(&mut self, base: u64, length: u64) {
        let (mut base, mut length) = (base, length);
        if let Some((&before, &size)) = self.free.range(..base).next_back()
            && before + size == base
        {
            self.free.remove(&before);
            base = before;
            length += size;
        }
        if let Some(size) = self.free.remove(&(base + length)) {
            length += size;
        }
        self.free.insert(base, length);
    }

    /// Whether all of `[base, base + length)` is free.
    pub(crate) fn is_whole(&self, base: u64, length: u64) -> bool {
        self.free.get(&base) == Some(&length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_reused_and_joined() {
        let mut arena = Arena::new(0x1000, 0x1000);
        let a = arena.take(0x100, 0x100);
        let b = arena.take(0x200, 0x100);
        assert_eq!((a, b), (Some(0x1000), Some(0x1100)));
        assert!(!arena.take_at(0x1080, 0x10));
        arena.give(0x1000, 0x100);
        assert_eq!(arena.take(0x80, 0x80), Some(0x1000));
        arena.give(0x1000, 0x80);
        arena.give(0x1100, 0x200);
        assert!(arena.is_whole(0x1000, 0x1000));
        assert_eq!(arena.take(0x1001, 1), None);
    }
}
