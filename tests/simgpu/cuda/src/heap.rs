//! Device memory of this process. A device address is an address of the process: copies just copy.

use std::collections::BTreeMap;

use simgpu_core::fault::FaultKind;
use simgpu_core::{AllocationKind, OutOfMemory};

use crate::arena::Arena;
use crate::call::Call;
use crate::code::{Code, Result};
use crate::context::Context;
use crate::driver::{Driver, lock};
use crate::sys::{self, Backing};

/// Unit of what a GPU hands out, and of large allocations.
pub(crate) const BLOCK: u64 = 2 << 20;
/// Smaller linear allocations share blocks.
const SMALL: u64 = 1 << 20;
/// Alignment of linear allocations.
const ALIGNMENT: u64 = 512;
/// Where the arena is: below programs (0x55…), stack and libraries (0x7f…), the same in each run.
const ARENA_BASE: u64 = 0x2000_0000_0000;
const ARENA_BYTES: u64 = 32 << 40;
/// What one copy of this library takes of it: a test may load several into one process.
const PART: u64 = 2 << 40;
const MARK: u64 = 4096;

/// What a range of the arena is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An allocation with blocks of its own.
    Large(AllocationKind),
    /// Part of a shared block.
    Small,
    /// From a pool.
    Pool(u64),
    /// Address space for physical memory.
    Reserved,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    pub(crate) base: u64,
    /// Requested.
    pub(crate) bytes: u64,
    /// Mapped.
    pub(crate) mapped: u64,
    pub(crate) kind: Kind,
    pub(crate) gpu: usize,
    pub(crate) context: u64,
}

struct Block {
    gpu: usize,
    context: u64,
    arena: Arena,
}

pub(crate) struct Heap {
    pub(crate) arena: Arena,
    pub(crate) ranges: BTreeMap<u64, Range>,
    blocks: BTreeMap<u64, Block>,
}

impl Heap {
    pub(crate) fn new() -> Self {
        let claimed = (0..ARENA_BYTES / PART).find(|part| {
            // A page that is never used: it marks the part as taken.
            sys::map(ARENA_BASE + part * PART, MARK, Backing::Nothing, false)
        });
        let base = ARENA_BASE + claimed.unwrap_or(0) * PART;
        let arena = Arena::new(base + BLOCK, PART - BLOCK);
        Self {
            arena,
            ranges: BTreeMap::new(),
            blocks: BTreeMap::new(),
        }
    }

    /// The range that holds all of `[address, address + bytes)`.
    pub(crate) fn find(&self, address: u64, bytes: u64) -> Option<Range> {
        let (_, range) = self.ranges.range(..=address).next_back()?;
        let inside = address - range.base;
        (inside < range.bytes.max(1) && bytes <= range.bytes - inside.min(range.bytes))
            .then_some(*range)
    }

    /// Takes address space and maps it; skips what the process has mapped there itself.
    pub(crate) fn map(&mut self, bytes: u64, alignment: u64, backing: Backing) -> Option<u64> {
        for _ in 0..64 {
            let base = self.arena.take(bytes, alignment)?;
            if sys::map(base, bytes, backing, false) {
                return Some(base);
            }
        }
        None
    }

    fn small(&mut self, context: &Context, bytes: u64) -> Option<u64> {
        let own = |b: &&mut Block| b.gpu == context.gpu && b.context == context.handle;
        self.blocks
            .values_mut()
            .filter(own)
            .find_map(|b| b.arena.take(bytes, ALIGNMENT))
    }
}

/// Whether an address belongs to the arena.
pub(crate) fn is_device_address(address: u64) -> bool {
    (ARENA_BASE..ARENA_BASE + ARENA_BYTES).contains(&address)
}

/// Notes a failed reservation in the journal record.
pub(crate) fn out_of_memory(call: &mut Call, error: OutOfMemory) -> Code {
    call.free(error.free);
    Code::OUT_OF_MEMORY
}

/// An armed fault of this allocation.
pub(crate) fn injected(driver: &Driver, gpu: usize) -> Result<()> {
    match driver.process.fault(FaultKind::Allocation, gpu) {
        Some(code) => Err(Code(code as i32)),
        None => Ok(()),
    }
}

/// Allocates `bytes` of linear or managed memory.
pub(crate) fn allocate(
    driver: &Driver,
    context: &Context,
    bytes: u64,
    kind: AllocationKind,
    call: &mut Call,
) -> Result<u64> {
    if bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    injected(driver, context.gpu)?;
    let mut heap = lock(&driver.heap);
    let small = bytes < SMALL && kind == AllocationKind::Linear;
    let padded = bytes.checked_next_multiple_of(if small { ALIGNMENT } else { BLOCK });
    let padded = padded.ok_or(Code::OUT_OF_MEMORY)?;
    let shared = if small {
        heap.small(context, padded)
    } else {
        None
    };
    let base = match shared {
        Some(base) => {
            call.free(driver.process.free_bytes_now(context.gpu));
            base
        }
        None => {
            let size = if small { BLOCK } else { padded };
            let free = driver
                .process
                .reserve(context.gpu, size)
                .map_err(|e| out_of_memory(call, e))?;
            call.free(free);
            let Some(base) = heap.map(size, BLOCK, Backing::Memory) else {
                driver.process.unreserve(context.gpu, size);
                return Err(Code::OUT_OF_MEMORY);
            };
            if small {
                let mut arena = Arena::new(base, BLOCK);
                arena.take(padded, ALIGNMENT);
                heap.blocks.insert(
                    base,
                    Block {
                        gpu: context.gpu,
                        context: context.handle,
                        arena,
                    },
                );
            }
            base
        }
    };
    let kind_of_range = if small {
        Kind::Small
    } else {
        Kind::Large(kind)
    };
    heap.ranges.insert(
        base,
        Range {
            base,
            bytes,
            mapped: padded,
            kind: kind_of_range,
            gpu: context.gpu,
            context: context.handle,
        },
    );
    driver
        .process
        .note_allocation(base, bytes, context.gpu, kind);
    Ok(base)
}

/// `cuMemFree`: frees linear, managed and pool memory by its base address.
pub(crate) fn free(driver: &Driver, address: u64) -> Result<()> {
    let mut heap = lock(&driver.heap);
    let range = heap
        .ranges
        .get(&address)
        .copied()
        .ok_or(Code::INVALID_VALUE)?;
    if matches!(range.kind, Kind::Reserved | ARRAY) {
        return Err(Code::INVALID_VALUE);
    }
    release(driver, &mut heap, range);
    Ok(())
}

const ARRAY: Kind = Kind::Large(AllocationKind::Array);

/// `cuArrayDestroy`: an array's handle is no address that `cuMemFree` takes.
pub(crate) fn free_array(driver: &Driver, handle: u64) -> Result<()> {
    let mut heap = lock(&driver.heap);
    let range = heap.ranges.get(&handle).copied();
    let range = range.filter(|range| range.kind == ARRAY);
    release(driver, &mut heap, range.ok_or(Code::INVALID_HANDLE)?);
    Ok(())
}

fn release(driver: &Driver, heap: &mut Heap, range: Range) {
    heap.ranges.remove(&range.base);
    driver.process.forget_allocation(range.base);
    match range.kind {
        Kind::Reserved => {}
        Kind::Large(_) => {
            sys::unmap(range.base, range.mapped);
            heap.arena.give(range.base, range.mapped);
            driver.process.unreserve(range.gpu, range.mapped);
        }
        Kind::Pool(pool) => {
            sys::unmap(range.base, range.mapped);
            heap.arena.give(range.base, range.mapped);
            crate::pool::returned(driver, pool, range.mapped);
        }
        Kind::Small => {
            // Another allocation must not find this one's data to be zeros by luck: like the
            // driver, small memory is handed out as it was left.
            let Some((&base, block)) = heap.blocks.range_mut(..=range.base).next_back() else {
                return;
            };
            block.arena.give(range.base, range.mapped);
            if block.arena.is_whole(base, BLOCK) {
                heap.blocks.remove(&base);
                sys::unmap(base, BLOCK);
                heap.arena.give(base, BLOCK);
                driver.process.unreserve(range.gpu, BLOCK);
            }
        }
    }
}

/// Frees what a destroyed context allocated.
pub(crate) fn release_context(driver: &Driver, context: u64) {
    let mut heap = lock(&driver.heap);
    let own: Vec<Range> = heap
        .ranges
        .values()
        .filter(|r| r.context == context && r.kind != Kind::Reserved)
        .copied()
        .collect();
    for range in own {
        release(driver, &mut heap, range);
    }
}
