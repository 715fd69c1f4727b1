//! A hash table on mapped pages that never stalls to rehash.
//!
//! Open addressing with linear probing. When it is half full a table of twice the size is mapped
//! and each later operation moves a few slots over, so no single allocation of the application
//! pays for a whole rehash. Zeroed memory is an empty table.

use crate::sys::pages::{MappedSlice, Zeroable};

/// Slots of the first mapping: one page of 32-byte slots.
const FIRST_SLOTS: usize = 128;
/// Slots moved by each operation. Two would already finish before the new table is half full.
const MOVED_AT_ONCE: usize = 8;
/// Marks a slot that never held a key.
const EMPTY: u64 = 0;
/// Marks a moved or removed slot of the table that is being left.
const GONE: u64 = u64::MAX;
/// 2^64 divided by the golden ratio: spreads aligned addresses over the high bits.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Spreads the bits of a key; the highest ones are the best.
#[must_use]
pub const fn spread(key: u64) -> u64 {
    (key ^ (key >> 32)).wrapping_mul(MULTIPLIER)
}

/// The value could not be stored: the kernel gave no memory, or the key is 0 or `u64::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

#[derive(Clone, Copy)]
struct Slot<V> {
    key: u64,
    value: V,
}

crate::sys::zeroable_slot!(Slot);

/// A map from non-zero numbers to plain values.
pub struct Table<V: Zeroable> {
    slots: MappedSlice<Slot<V>>,
    /// The table being left, from `moved` on.
    old: MappedSlice<Slot<V>>,
    moved: usize,
    /// Keys in `slots`.
    live: usize,
    /// Keys in `old`.
    old_live: usize,
}

impl<V: Zeroable> Default for Table<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Zeroable> Table<V> {
    /// An empty table without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slots: MappedSlice::empty(),
            old: MappedSlice::empty(),
            moved: 0,
            live: 0,
            old_live: 0,
        }
    }

    /// Number of keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.live + self.old_live
    }

    /// Whether there is no key.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stores a value and returns the one it replaces.
    ///
    /// # Errors
    /// [`Full`]: nothing was stored or changed.
    pub fn insert(&mut self, key: u64, value: V) -> Result<Option<V>, Full> {
        if key == EMPTY || key == GONE {
            return Err(Full);
        }
        self.step();
        for slots in [&mut self.old, &mut self.slots] {
            if let Some(slot) = find(slots, key).and_then(|at| slots.get_mut(at)) {
                return Ok(Some(core::mem::replace(&mut slot.value, value)));
            }
        }
        self.make_room()?;
        place(&mut self.slots, Slot { key, value });
        self.live += 1;
        Ok(None)
    }

    /// The value under a key.
    #[must_use]
    pub fn get(&self, key: u64) -> Option<V> {
        let slot = find(&self.slots, key)
            .and_then(|slot| self.slots.get(slot))
            .or_else(|| find(&self.old, key).and_then(|slot| self.old.get(slot)))?;
        Some(slot.value)
    }

    /// Removes a key and returns its value.
    pub fn remove(&mut self, key: u64) -> Option<V> {
        self.step();
        if let Some(at) = find(&self.slots, key) {
            let value = self.slots.get(at)?.value;
            close_gap(&mut self.slots, at);
            self.live -= 1;
            return Some(value);
        }
        let at = find(&self.old, key)?;
        let slot = self.old.get_mut(at)?;
        slot.key = GONE;
        self.old_live -= 1;
        Some(slot.value)
    }

    /// Removes every key whose value satisfies `unwanted`, which is called exactly once for each
    /// key. Looks at every slot: for rare events such as the end of a context.
    pub fn remove_where(&mut self, mut unwanted: impl FnMut(u64, &V) -> bool) {
        while self.old_live > 0 {
            self.step();
        }
        self.drop_old();
        // Start after an empty slot: then no run of slots wraps around the start of the walk, and
        // closing a gap only moves slots that were not looked at yet.
        let Some(start) = self.slots.iter().position(|slot| slot.key == EMPTY) else {
            return;
        };
        let mask = self.slots.len() - 1;
        let mut at = (start + 1) & mask;
        while at != start {
            match self.slots.get(at) {
                Some(slot) if slot.key != EMPTY && unwanted(slot.key, &slot.value) => {
                    close_gap(&mut self.slots, at);
                    self.live -= 1;
                }
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// Calls `see` for each key, in no order.
    pub fn for_each(&self, mut see: impl FnMut(u64, &V)) {
        for slot in self.slots.iter().chain(self.old.iter()) {
            if slot.key != EMPTY && slot.key != GONE {
                see(slot.key, &slot.value);
            }
        }
    }

    /// Moves a few slots out of the old table.
    fn step(&mut self) {
        if self.old.is_empty() {
            return;
        }
        for _ in 0..MOVED_AT_ONCE {
            if self.old_live == 0 {
                break;
            }
            let Some(slot) = self.old.get_mut(self.moved) else {
                break;
            };
            self.moved += 1;
            if slot.key != EMPTY && slot.key != GONE {
                let moving = *slot;
                slot.key = GONE;
                place(&mut self.slots, moving);
                self.old_live -= 1;
                self.live += 1;
            }
        }
        if self.old_live == 0 {
            self.drop_old();
        }
    }

    fn drop_old(&mut self) {
        self.old = MappedSlice::empty();
        self.moved = 0;
    }

    /// Maps a larger table when the present one is half full.
    fn make_room(&mut self) -> Result<(), Full> {
        if (self.len() + 1) * 2 <= self.slots.len() {
            return Ok(());
        }
        // Only ever one table is being left.
        while self.old_live > 0 {
            self.step();
        }
        let wanted = (self.slots.len() * 2).max(FIRST_SLOTS);
        let Some(larger) = MappedSlice::zeroed(wanted) else {
            // Without memory the present table may still fill up to its last empty slot but one.
            return if self.live + 2 < self.slots.len() {
                Ok(())
            } else {
                Err(Full)
            };
        };
        self.old = core::mem::replace(&mut self.slots, larger);
        self.moved = 0;
        self.old_live = core::mem::take(&mut self.live);
        if self.old_live == 0 {
            self.drop_old();
        }
        Ok(())
    }
}

const fn home(key: u64, length: usize) -> usize {
    // The top four bits choose the shard (`crate::blocks`), so the index takes those below.
    ((spread(key) << 4) >> (64 - length.trailing_zeros())) as usize
}

/// Index of a key's slot.
fn find<V: Zeroable>(slots: &[Slot<V>], key: u64) -> Option<usize> {
    if slots.is_empty() || key == EMPTY || key == GONE {
        return None;
    }
    let mask = slots.len() - 1;
    let mut at = home(key, slots.len());
    for _ in 0..slots.len() {
        let slot = slots.get(at)?;
        if slot.key == key {
            return Some(at);
        }
        if slot.key == EMPTY {
            return None;
        }
        at = (at + 1) & mask;
    }
    None
}

/// Stores a slot whose key is not in the table; there is an empty one.
fn place<V: Zeroable>(slots: &mut [Slot<V>], new: Slot<V>) {
    let mask = slots.len() - 1;
    let mut at = home(new.key, slots.len());
    while let Some(slot) = slots.get_mut(at) {
        if slot.key == EMPTY {
            *slot = new;
            return;
        }
        at = (at + 1) & mask;
    }
}

/// Empties a slot and moves later ones of its run up, so that no search stops early.
fn close_gap<V: Zeroable>(slots: &mut [Slot<V>], mut gap: usize) {
    let mask = slots.len() - 1;
    let mut at = gap;
    loop {
        at = (at + 1) & mask;
        let Some(slot) = slots.get(at).copied() else {
            return;
        };
        if slot.key == EMPTY {
            break;
        }
        // The slot may move up if its home is not between the gap (exclusive) and itself.
        let from_home = at.wrapping_sub(home(slot.key, slots.len())) & mask;
        let from_gap = at.wrapping_sub(gap) & mask;
        if from_home >= from_gap {
            if let Some(target) = slots.get_mut(gap) {
                *target = slot;
            }
            gap = at;
        }
    }
    if let Some(slot) = slots.get_mut(gap) {
        slot.key = EMPTY;
    }
}
