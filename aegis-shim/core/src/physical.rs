//! Physical memory made with `cuMemCreate`.
//!
//! It lives until every handle (one from `cuMemCreate`, more from `cuMemRetainAllocationHandle`) is
//! released *and* every mapping is gone. A handle's number or an address may be given out again
//! while the memory lives on, so the memory has an identity of its own.

use crate::blocks::Block;
use crate::sys::pages::Zeroable;
use crate::table::Table;

#[derive(Clone, Copy)]
#[repr(C)]
struct Memory {
    block: Block,
    handles: u64,
    mappings: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Handle {
    memory: u64,
    references: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Mapping {
    memory: u64,
    bytes: u64,
}

crate::sys::zeroable!(Memory, Handle, Mapping);
const _: () = {
    const fn assert_zeroable<T: Zeroable>() {}
    assert_zeroable::<Memory>();
};

/// What a released handle referred to; hand it back if the driver refused the release.
#[derive(Clone, Copy, Debug)]
pub struct Released {
    handle: u64,
    memory: u64,
}

/// The process's physical memory. Zeroed memory is an empty book.
#[derive(Default)]
pub struct Physical {
    next: u64,
    memory: Table<Memory>,
    handles: Table<Handle>,
    mappings: Table<Mapping>,
}

impl Physical {
    /// No memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            next: 0,
            memory: Table::new(),
            handles: Table::new(),
            mappings: Table::new(),
        }
    }

    /// Enters new memory. `false`: no room, the memory is not accounted.
    pub fn create(&mut self, handle: u64, block: Block) -> bool {
        self.next += 1;
        let memory = self.next;
        if self
            .memory
            .insert(
                memory,
                Memory {
                    block,
                    handles: 1,
                    mappings: 0,
                },
            )
            .is_err()
        {
            return false;
        }
        if self
            .handles
            .insert(
                handle,
                Handle {
                    memory,
                    references: 1,
                },
            )
            .is_err()
        {
            self.memory.remove(memory);
            return false;
        }
        true
    }

    /// A handle for the memory mapped at `address` was given out.
    pub fn retain(&mut self, handle: u64, address: u64) {
        let Some(memory) = self.mapped_at(address) else {
            return;
        };
        let references = match self.handles.get(handle) {
            Some(known) if known.memory == memory => known.references,
            _ => 0,
        };
        let entry = Handle {
            memory,
            references: references + 1,
        };
        if self.handles.insert(handle, entry).is_ok() {
            self.change(memory, |memory| memory.handles += 1);
        }
    }

    /// Before the driver's release: takes one reference off the handle.
    pub fn begin_release(&mut self, handle: u64) -> Option<Released> {
        let entry = self.handles.remove(handle)?;
        if entry.references > 1 {
            let left = Handle {
                references: entry.references - 1,
                ..entry
            };
            // Room was made by the removal.
            let _ = self.handles.insert(handle, left);
        }
        Some(Released {
            handle,
            memory: entry.memory,
        })
    }

    /// The driver released it. Returns the memory if that was its end.
    pub fn finish_release(&mut self, released: Released) -> Option<Block> {
        self.change(released.memory, |memory| {
            memory.handles = memory.handles.saturating_sub(1)
        });
        self.end_if_unused(released.memory)
    }

    /// The driver refused the release.
    pub fn undo_release(&mut self, released: Released) {
        let references = self
            .handles
            .get(released.handle)
            .map_or(0, |handle| handle.references);
        let entry = Handle {
            memory: released.memory,
            references: references + 1,
        };
        let _ = self.handles.insert(released.handle, entry);
    }

    /// The memory of `handle` was mapped at `address`.
    pub fn map(&mut self, address: u64, bytes: u64, handle: u64) {
        let Some(Handle { memory, .. }) = self.handles.get(handle) else {
            return;
        };
        if let Ok(None) = self.mappings.insert(address, Mapping { memory, bytes }) {
            self.change(memory, |memory| memory.mappings += 1);
        }
    }

    /// A range was unmapped, possibly several mappings; shows ended memory to `ended`.
    pub fn unmap(&mut self, address: u64, bytes: u64, mut ended: impl FnMut(&Block)) {
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end {
            let Some(mapping) = self.mappings.remove(at) else {
                return;
            };
            self.change(mapping.memory, |memory| {
                memory.mappings = memory.mappings.saturating_sub(1);
            });
            if let Some(block) = self.end_if_unused(mapping.memory) {
                ended(&block);
            }
            at = at.saturating_add(mapping.bytes.max(1));
        }
    }

    fn mapped_at(&self, address: u64) -> Option<u64> {
        if let Some(mapping) = self.mappings.get(address) {
            return Some(mapping.memory);
        }
        let mut memory = None;
        self.mappings.for_each(|start, mapping| {
            if (start..start.saturating_add(mapping.bytes)).contains(&address) {
                memory = Some(mapping.memory);
            }
        });
        memory
    }

    fn change(&mut self, memory: u64, change: impl FnOnce(&mut Memory)) {
        if let Some(mut value) = self.memory.get(memory) {
            change(&mut value);
            // The key is there: replacing needs no room.
            let _ = self.memory.insert(memory, value);
        }
    }

    fn end_if_unused(&mut self, memory: u64) -> Option<Block> {
        let value = self.memory.get(memory)?;
        if value.handles > 0 || value.mappings > 0 {
            return None;
        }
        self.memory.remove(memory);
        Some(value.block)
    }
}
