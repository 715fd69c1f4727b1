//! Virtual memory management: address ranges, physical handles, and the mappings between them.
//!
//! All physical memory of the process is one sparse file, so that a handle mapped twice, or mapped
//! again elsewhere, shows the same data.

use std::collections::BTreeMap;

use simgpu_core::AllocationKind;

use crate::arena::Arena;
use crate::call::Call;
use crate::code::{Code, Result};
use crate::driver::{Driver, lock};
use crate::heap::{BLOCK, Kind, Range, injected, out_of_memory};
use crate::sys::{self, Backing};

const FIRST: u64 = 0xa000_0000;
const FILE_BYTES: u64 = 32 << 40;

/// Granularity of physical memory and mappings.
pub(crate) const GRANULARITY: u64 = BLOCK;

#[derive(Debug, Clone, Copy)]
struct Handle {
    device: i32,
    gpu: usize,
    bytes: u64,
    offset: u64,
    /// Handle references (create, retain) not yet released.
    references: u32,
    mappings: u32,
    on_device: bool,
}

#[derive(Debug, Clone, Copy)]
struct Mapping {
    bytes: u64,
    handle: u64,
}

pub(crate) struct Physical {
    file: Option<i32>,
    offsets: Arena,
    handles: BTreeMap<u64, Handle>,
    mappings: BTreeMap<u64, Mapping>,
    next: u64,
}

impl Physical {
    pub(crate) fn new() -> Self {
        let (handles, mappings) = (BTreeMap::new(), BTreeMap::new());
        Self {
            file: None,
            offsets: Arena::new(0, FILE_BYTES),
            handles,
            mappings,
            next: FIRST,
        }
    }

    fn file(&mut self) -> Result<i32> {
        if let Some(file) = self.file {
            return Ok(file);
        }
        let file = sys::memory_file().ok_or(Code::OUT_OF_MEMORY)?;
        if !sys::grow_file(file, FILE_BYTES) {
            return Err(Code::OUT_OF_MEMORY);
        }
        self.file = Some(file);
        Ok(file)
    }

    /// Whether `[address, address + bytes)` is mapped throughout.
    pub(crate) fn is_mapped(&self, address: u64, bytes: u64) -> bool {
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end {
            let Some((&base, mapping)) = self.mappings.range(..=at).next_back() else {
                return false;
            };
            if at >= base + mapping.bytes {
                return false;
            }
            at = base + mapping.bytes;
        }
        true
    }

    fn drop_if_unused(&mut self, driver: &Driver, handle: u64) {
        let Some(own) = self.handles.get(&handle).copied() else {
            return;
        };
        if own.references > 0 || own.mappings > 0 {
            return;
        }
        self.handles.remove(&handle);
        if let Some(file) = self.file {
            sys::punch(file, own.offset, own.bytes);
        }
        self.offsets.give(own.offset, own.bytes);
        if own.on_device {
            driver.process.unreserve(own.gpu, own.bytes);
            driver.process.forget_allocation(handle);
        }
    }
}

/// `cuMemAddressReserve`.
pub(crate) fn reserve(driver: &Driver, bytes: u64, alignment: u64, wanted: u64) -> Result<u64> {
    let alignment = alignment.max(GRANULARITY);
    if bytes == 0 || !bytes.is_multiple_of(4096) || !alignment.is_power_of_two() {
        return Err(Code::INVALID_VALUE);
    }
    let mut heap = lock(&driver.heap);
    let at_wanted =
        wanted != 0 && wanted.is_multiple_of(alignment) && heap.arena.take_at(wanted, bytes);
    let base = if at_wanted && sys::map(wanted, bytes, Backing::Nothing, false) {
        wanted
    } else {
        heap.map(bytes, alignment, Backing::Nothing)
            .ok_or(Code::OUT_OF_MEMORY)?
    };
    heap.ranges.insert(
        base,
        Range {
            base,
            bytes,
            mapped: bytes,
            kind: Kind::Reserved,
            gpu: 0,
            context: 0,
        },
    );
    Ok(base)
}

/// `cuMemAddressFree`.
pub(crate) fn unreserve(driver: &Driver, address: u64, bytes: u64) -> Result<()> {
    let mut heap = lock(&driver.heap);
    let physical = lock(&driver.physical);
    let range = heap
        .ranges
        .get(&address)
        .copied()
        .ok_or(Code::INVALID_VALUE)?;
    let used = physical
        .mappings
        .range(address..address.saturating_add(bytes))
        .next()
        .is_some();
    if range.kind != Kind::Reserved || range.bytes != bytes || used {
        return Err(Code::INVALID_VALUE);
    }
    heap.ranges.remove(&address);
    sys::unmap(address, bytes);
    heap.arena.give(address, bytes);
    Ok(())
}

/// `cuMemCreate` on a device (`Some`) or in host memory.
pub(crate) fn create(
    driver: &Driver,
    device: Option<i32>,
    bytes: u64,
    call: &mut Call,
) -> Result<u64> {
    if bytes == 0 || !bytes.is_multiple_of(GRANULARITY) {
        return Err(Code::INVALID_VALUE);
    }
    let gpu = device.map(|d| driver.gpu(d)).transpose()?;
    let mut physical = lock(&driver.physical);
    physical.file()?;
    if let Some(gpu) = gpu {
        injected(driver, gpu)?;
        let free = driver
            .process
            .reserve(gpu, bytes)
            .map_err(|e| out_of_memory(call, e))?;
        call.free(free);
    }
    let handle = physical.next;
    let Some(offset) = physical.offsets.take(bytes, GRANULARITY) else {
        if let Some(gpu) = gpu {
            driver.process.unreserve(gpu, bytes);
        }
        return Err(Code::OUT_OF_MEMORY);
    };
    physical.next += 1;
    physical.handles.insert(
        handle,
        Handle {
            device: device.unwrap_or(-1),
            gpu: gpu.unwrap_or(0),
            bytes,
            offset,
            references: 1,
            mappings: 0,
            on_device: gpu.is_some(),
        },
    );
    if let Some(gpu) = gpu {
        driver
            .process
            .note_allocation(handle, bytes, gpu, AllocationKind::Physical);
    }
    Ok(handle)
}

/// `cuMemRelease`: the memory lives on while it is mapped.
pub(crate) fn release(driver: &Driver, handle: u64) -> Result<()> {
    let mut physical = lock(&driver.physical);
    let own = physical
        .handles
        .get_mut(&handle)
        .filter(|h| h.references > 0);
    own.ok_or(Code::INVALID_VALUE)?.references -= 1;
    physical.drop_if_unused(driver, handle);
    Ok(())
}

/// `cuMemRetainAllocationHandle`.
pub(crate) fn retain(driver: &Driver, address: u64) -> Result<u64> {
    let mut physical = lock(&driver.physical);
    let (base, mapping) = physical
        .mappings
        .range(..=address)
        .next_back()
        .map(|(b, m)| (*b, *m))
        .ok_or(Code::INVALID_VALUE)?;
    if address >= base + mapping.bytes {
        return Err(Code::INVALID_VALUE);
    }
    let own = physical
        .handles
        .get_mut(&mapping.handle)
        .ok_or(Code::INVALID_VALUE)?;
    own.references += 1;
    Ok(mapping.handle)
}

/// Device of a handle, -1 for host memory.
pub(crate) fn device_of(driver: &Driver, handle: u64) -> Result<i32> {
    lock(&driver.physical)
        .handles
        .get(&handle)
        .map(|h| h.device)
        .ok_or(Code::INVALID_VALUE)
}

/// `cuMemMap`.
pub(crate) fn map(
    driver: &Driver,
    address: u64,
    bytes: u64,
    offset: u64,
    handle: u64,
) -> Result<()> {
    let heap = lock(&driver.heap);
    let mut physical = lock(&driver.physical);
    let reserved = heap
        .find(address, bytes)
        .is_some_and(|r| r.kind == Kind::Reserved);
    let own = physical
        .handles
        .get(&handle)
        .copied()
        .ok_or(Code::INVALID_VALUE)?;
    let aligned =
        address.is_multiple_of(GRANULARITY) && bytes.is_multiple_of(GRANULARITY) && bytes > 0;
    let fits = offset
        .checked_add(bytes)
        .is_some_and(|end| end <= own.bytes);
    let before = physical
        .mappings
        .range(..address.saturating_add(bytes))
        .next_back();
    let overlaps = before.is_some_and(|(base, m)| base + m.bytes > address);
    if !reserved || !aligned || !fits || !offset.is_multiple_of(GRANULARITY) || overlaps {
        return Err(Code::INVALID_VALUE);
    }
    let descriptor = physical.file()?;
    let backing = Backing::File {
        descriptor,
        offset: own.offset + offset,
    };
    if !sys::map(address, bytes, backing, true) {
        return Err(Code::OUT_OF_MEMORY);
    }
    physical.mappings.insert(address, Mapping { bytes, handle });
    if let Some(own) = physical.handles.get_mut(&handle) {
        own.mappings += 1;
    }
    Ok(())
}

/// `cuMemUnmap`: whole mappings only.
pub(crate) fn unmap(driver: &Driver, address: u64, bytes: u64) -> Result<()> {
    let mut physical = lock(&driver.physical);
    let end = address.saturating_add(bytes);
    let inside: Vec<(u64, Mapping)> = physical
        .mappings
        .range(address..end)
        .map(|(b, m)| (*b, *m))
        .collect();
    let covered: u64 = inside.iter().map(|(_, m)| m.bytes).sum();
    if covered != bytes || bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    for (base, mapping) in inside {
        physical.mappings.remove(&base);
        sys::map(base, mapping.bytes, Backing::Nothing, true);
        if let Some(own) = physical.handles.get_mut(&mapping.handle) {
            own.mappings = own.mappings.saturating_sub(1);
        }
        physical.drop_if_unused(driver, mapping.handle);
    }
    Ok(())
}
