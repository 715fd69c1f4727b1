//! Which blocks of device memory the process holds: address or handle -> size, GPU, kind, context.

use aegis_common::abi::ledger::Kind;

use crate::sys::pages::Zeroable;
use crate::sys::spin::SpinLock;
use crate::table::{Full, Table, spread};

/// Tables with a lock each, so that threads seldom meet. A power of two: the top four bits of the
/// spread key choose one.
const SHARDS: usize = 16;

/// One block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Block {
    /// Charged bytes.
    pub bytes: u64,
    /// The context that owns it, 0 if it belongs to none.
    pub context: u64,
    tag: u64,
}

crate::sys::zeroable!(Block);
const _: () = assert_zeroable::<Block>();
const fn assert_zeroable<T: Zeroable>() {}

impl Block {
    /// A block of a kind on a GPU slot.
    #[must_use]
    pub const fn new(bytes: u64, gpu: usize, kind: Kind, context: u64) -> Self {
        Self {
            bytes,
            context,
            tag: (gpu as u64) << 8 | kind as u64,
        }
    }

    /// The GPU slot in the ledger.
    #[must_use]
    pub const fn gpu(&self) -> usize {
        (self.tag >> 8) as usize
    }

    /// Index of the kind in `GpuLine::used`.
    #[must_use]
    pub const fn kind_index(&self) -> usize {
        (self.tag & 0xff) as usize
    }
}

/// All blocks of the process. Zeroed memory is an empty book.
pub struct Blocks {
    shards: [SpinLock<Table<Block>>; SHARDS],
}

impl Default for Blocks {
    fn default() -> Self {
        Self::new()
    }
}

impl Blocks {
    /// No blocks.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            shards: [const { SpinLock::new(Table::new()) }; SHARDS],
        }
    }

    /// Enters a block and returns one that was still under the same address: the driver gave the
    /// address out again, so the earlier block is gone.
    ///
    /// # Errors
    /// [`Full`]: nothing was entered.
    pub fn enter(&self, address: u64, block: Block) -> Result<Option<Block>, Full> {
        self.shard(address).lock().insert(address, block)
    }

    /// Takes a block out before its address is given back to the driver. (Afterwards another
    /// thread might already have got the same address.)
    pub fn take(&self, address: u64) -> Option<Block> {
        self.shard(address).lock().remove(address)
    }

    /// The block under an address.
    #[must_use]
    pub fn get(&self, address: u64) -> Option<Block> {
        self.shard(address).lock().get(address)
    }

    /// Removes the blocks of a context that ended and shows each one to `dropped`.
    pub fn drop_context(&self, context: u64, mut dropped: impl FnMut(&Block)) {
        for shard in &self.shards {
            shard.lock().remove_where(|_, block| {
                let gone = block.context == context;
                if gone {
                    dropped(block);
                }
                gone
            });
        }
    }

    fn shard(&self, address: u64) -> &SpinLock<Table<Block>> {
        // The index is below SHARDS by construction; the compiler sees it and drops the check.
        &self.shards[(spread(address) >> 60) as usize & (SHARDS - 1)]
    }
}
