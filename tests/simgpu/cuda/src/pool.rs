//! Stream-ordered allocation. A pool reserves whole blocks; freed memory stays reserved until the
//! next synchronisation, which gives back what exceeds the release threshold.

use std::collections::BTreeMap;

use simgpu_core::AllocationKind;

use crate::call::Call;
use crate::code::{Code, Result};
use crate::context::Context;
use crate::driver::{Driver, lock};
use crate::heap::{BLOCK, Kind, Range, injected, out_of_memory};
use crate::sys::Backing;

/// Default pools have the handles `FIRST + device`.
const FIRST: u64 = 0xb000_0000;
/// Alignment of allocations.
const ALIGNMENT: u64 = 4096;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pool {
    gpu: usize,
    /// Takes nothing of the GPU's memory.
    on_host: bool,
    reserved: u64,
    reserved_high: u64,
    used: u64,
    used_high: u64,
    threshold: u64,
}

pub(crate) struct Pools {
    pools: BTreeMap<u64, Pool>,
    current: Vec<u64>,
    next: u64,
}

/// `CUmemPool_attribute` values.
pub(crate) const RELEASE_THRESHOLD: u32 = 4;
const RESERVED_CURRENT: u32 = 5;
const RESERVED_HIGH: u32 = 6;
const USED_CURRENT: u32 = 7;
const USED_HIGH: u32 = 8;

pub(crate) fn default_of(device: i32) -> u64 {
    FIRST + device as u64
}

impl Pools {
    pub(crate) fn new(devices: usize) -> Self {
        let current = (0..devices as u64).map(|d| FIRST + d).collect();
        Self {
            pools: BTreeMap::new(),
            current,
            next: FIRST + 0x100,
        }
    }

    fn get(&mut self, driver: &Driver, handle: u64) -> Result<&mut Pool> {
        let default = i32::try_from(handle.wrapping_sub(FIRST))
            .ok()
            .and_then(|d| driver.gpu(d).ok());
        match default {
            Some(gpu) => Ok(self.pools.entry(handle).or_insert(Pool {
                gpu,
                ..Pool::default()
            })),
            None => self.pools.get_mut(&handle).ok_or(Code::INVALID_VALUE),
        }
    }
}

/// `cuMemPoolCreate`; without a device the pool is in host memory.
pub(crate) fn create(driver: &Driver, device: Option<i32>) -> Result<u64> {
    let gpu = driver.gpu(device.unwrap_or(0))?;
    let mut pools = lock(&driver.pools);
    let handle = pools.next;
    pools.next += 1;
    pools.pools.insert(
        handle,
        Pool {
            gpu,
            on_host: device.is_none(),
            ..Pool::default()
        },
    );
    Ok(handle)
}

pub(crate) fn destroy(driver: &Driver, handle: u64) -> Result<()> {
    let mut pools = lock(&driver.pools);
    if handle < FIRST + 0x100 {
        return Err(Code::INVALID_VALUE);
    }
    let pool = pools.pools.get_mut(&handle).ok_or(Code::INVALID_VALUE)?;
    // Live allocations keep their memory until they are freed.
    driver
        .process
        .unreserve(pool.gpu, pool.reserved.saturating_sub(pool.used));
    pool.reserved = pool.reserved.min(pool.used);
    pool.threshold = 0;
    Ok(())
}

pub(crate) fn current(driver: &Driver, device: i32) -> Result<u64> {
    driver.gpu(device)?;
    lock(&driver.pools)
        .current
        .get(device as usize)
        .copied()
        .ok_or(Code::INVALID_DEVICE)
}

pub(crate) fn set_current(driver: &Driver, device: i32, handle: u64) -> Result<()> {
    driver.gpu(device)?;
    let mut pools = lock(&driver.pools);
    pools.get(driver, handle)?;
    let slot = pools
        .current
        .get_mut(device as usize)
        .ok_or(Code::INVALID_DEVICE)?;
    *slot = handle;
    Ok(())
}

/// `cuMemAllocAsync` and `cuMemAllocFromPoolAsync`.
pub(crate) fn allocate(
    driver: &Driver,
    context: &Context,
    handle: u64,
    bytes: u64,
    call: &mut Call,
) -> Result<u64> {
    if bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let padded = bytes
        .checked_next_multiple_of(ALIGNMENT)
        .ok_or(Code::OUT_OF_MEMORY)?;
    let mut heap = lock(&driver.heap);
    let mut pools = lock(&driver.pools);
    let pool = pools.get(driver, handle)?;
    injected(driver, pool.gpu)?;
    let used = pool.used.checked_add(padded).ok_or(Code::OUT_OF_MEMORY)?;
    let missing = match pool.on_host {
        true => 0,
        false => used.saturating_sub(pool.reserved),
    };
    let missing = missing
        .checked_next_multiple_of(BLOCK)
        .ok_or(Code::OUT_OF_MEMORY)?;
    let free = driver
        .process
        .reserve(pool.gpu, missing)
        .map_err(|e| out_of_memory(call, e))?;
    call.free(free);
    pool.reserved += missing;
    pool.reserved_high = pool.reserved_high.max(pool.reserved);
    let Some(base) = heap.map(padded, ALIGNMENT, Backing::Memory) else {
        return Err(Code::OUT_OF_MEMORY);
    };
    pool.used = used;
    pool.used_high = pool.used_high.max(used);
    let (gpu, on_host) = (pool.gpu, pool.on_host);
    heap.ranges.insert(
        base,
        Range {
            base,
            bytes,
            mapped: padded,
            kind: Kind::Pool(handle),
            gpu,
            context: context.handle,
        },
    );
    if !on_host {
        driver
            .process
            .note_allocation(base, bytes, gpu, AllocationKind::Pool);
    }
    Ok(base)
}

/// An allocation went back to its pool. The heap is locked by the caller.
pub(crate) fn returned(driver: &Driver, handle: u64, bytes: u64) {
    if let Ok(pool) = lock(&driver.pools).get(driver, handle) {
        pool.used = pool.used.saturating_sub(bytes);
    }
}

fn shrink(driver: &Driver, pool: &mut Pool, keep: u64) {
    let wanted = pool
        .used
        .max(keep)
        .next_multiple_of(BLOCK)
        .min(pool.reserved);
    driver.process.unreserve(pool.gpu, pool.reserved - wanted);
    pool.reserved = wanted;
}

/// `cuMemPoolTrimTo`.
pub(crate) fn trim(driver: &Driver, handle: u64, keep: u64) -> Result<()> {
    let mut pools = lock(&driver.pools);
    let pool = pools.get(driver, handle)?;
    shrink(driver, pool, keep.min(pool.reserved));
    Ok(())
}

/// What each synchronisation does.
pub(crate) fn synchronised(driver: &Driver, gpu: usize) {
    for pool in lock(&driver.pools)
        .pools
        .values_mut()
        .filter(|p| p.gpu == gpu)
    {
        if pool.reserved > pool.used {
            shrink(driver, pool, pool.threshold.min(pool.reserved));
        }
    }
}

/// The last context of a GPU is gone.
pub(crate) fn release_gpu(driver: &Driver, gpu: usize) {
    for pool in lock(&driver.pools)
        .pools
        .values_mut()
        .filter(|p| p.gpu == gpu)
    {
        (pool.reserved, pool.used) = (0, 0);
    }
}

pub(crate) fn attribute(driver: &Driver, handle: u64, attribute: u32) -> Result<u64> {
    let mut pools = lock(&driver.pools);
    let pool = pools.get(driver, handle)?;
    match attribute {
        // Reuse policies: 32-bit switches, on by default.
        1..=3 => Ok(1),
        RELEASE_THRESHOLD => Ok(pool.threshold),
        RESERVED_CURRENT => Ok(pool.reserved),
        RESERVED_HIGH => Ok(pool.reserved_high),
        USED_CURRENT => Ok(pool.used),
        USED_HIGH => Ok(pool.used_high),
        _ => Err(Code::INVALID_VALUE),
    }
}

pub(crate) fn set_attribute(
    driver: &Driver,
    handle: u64,
    attribute: u32,
    value: u64,
) -> Result<()> {
    let mut pools = lock(&driver.pools);
    let pool = pools.get(driver, handle)?;
    match attribute {
        1..=3 => {}
        RELEASE_THRESHOLD => pool.threshold = value,
        // The high-water marks can only be reset.
        RESERVED_HIGH if value == 0 => pool.reserved_high = pool.reserved,
        USED_HIGH if value == 0 => pool.used_high = pool.used,
        _ => return Err(Code::INVALID_VALUE),
    }
    Ok(())
}
