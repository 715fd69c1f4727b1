//! A caching allocator with the behaviour of a framework's that matters to a memory arbiter.
//!
//! Requests are rounded up to 2 MiB blocks. A freed block stays with the process and serves the next
//! request of about its size. When the driver is out of memory the cache goes back to the driver and
//! the request is tried once more; only then is it an OOM. Blocks are never split, so what the driver
//! sees is easy to reason about in a test.

use std::collections::{BTreeMap, BTreeSet};

use crate::device::{AllocError, DeviceMemory, DevicePtr};
use crate::error::WorkloadError;
use crate::oom::OomReport;
use crate::units::MIB;

/// Granularity of requests to the driver: PyTorch's for large blocks, and the GPU's large page.
pub const BLOCK: u64 = 2 * MIB;

/// A cached block may be larger than the request by a quarter before it counts as too wasteful.
const SLACK_DIVISOR: u64 = 4;

/// Bytes held by an allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Bytes handed out and not freed.
    pub allocated: u64,
    /// Bytes held from the driver, handed out or cached.
    pub reserved: u64,
    /// The most that `reserved` has been.
    pub peak_reserved: u64,
    /// How often the cache was given back because the driver was out of memory.
    pub cache_flushes: u64,
}

/// The allocator of one GPU.
#[derive(Debug, Default)]
pub struct CachingAllocator {
    active: BTreeMap<DevicePtr, u64>,
    cached: BTreeSet<(u64, DevicePtr)>,
    usage: Usage,
}

impl CachingAllocator {
    /// An allocator that holds nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What it holds.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// A block of at least `bytes` bytes.
    ///
    /// # Errors
    /// [`WorkloadError::OutOfMemory`] if the driver has no room even without this allocator's cache;
    /// any other driver error as it came.
    pub fn alloc(
        &mut self,
        device: &mut impl DeviceMemory,
        bytes: u64,
    ) -> Result<DevicePtr, WorkloadError> {
        let size = rounded(bytes);
        if let Some(ptr) = self.take_cached(size) {
            return Ok(ptr);
        }
        let ptr = match device.alloc(size) {
            Ok(ptr) => ptr,
            Err(AllocError::Other(error)) => return Err(error),
            Err(AllocError::OutOfMemory) => {
                self.usage.cache_flushes += 1;
                self.empty_cache(device)?;
                match device.alloc(size) {
                    Ok(ptr) => ptr,
                    Err(AllocError::Other(error)) => return Err(error),
                    Err(AllocError::OutOfMemory) => return Err(self.report(device, size)?),
                }
            }
        };
        self.active.insert(ptr, size);
        self.usage.allocated += size;
        self.usage.reserved += size;
        self.usage.peak_reserved = self.usage.peak_reserved.max(self.usage.reserved);
        Ok(ptr)
    }

    /// Takes a block back into the cache; the driver does not hear of it.
    ///
    /// # Errors
    /// [`WorkloadError::Driver`] with `CUDA_ERROR_INVALID_VALUE` if the block is not in use.
    pub fn free(&mut self, ptr: DevicePtr) -> Result<(), WorkloadError> {
        let Some(size) = self.active.remove(&ptr) else {
            return Err(WorkloadError::Driver {
                call: "CachingAllocator::free",
                code: 1,
                name: "CUDA_ERROR_INVALID_VALUE",
            });
        };
        self.cached.insert((size, ptr));
        self.usage.allocated -= size;
        Ok(())
    }

    /// Gives every cached block back to the driver.
    ///
    /// # Errors
    /// The driver's first error; that block and the rest stay cached.
    pub fn empty_cache(&mut self, device: &mut impl DeviceMemory) -> Result<(), WorkloadError> {
        while let Some(&(size, ptr)) = self.cached.first() {
            device.free(ptr)?;
            self.cached.remove(&(size, ptr));
            self.usage.reserved -= size;
        }
        Ok(())
    }

    /// The smallest cached block that fits without wasting more than [`SLACK_DIVISOR`] allows.
    fn take_cached(&mut self, size: u64) -> Option<DevicePtr> {
        let most = size.saturating_add(size / SLACK_DIVISOR);
        let block = *self
            .cached
            .range((size, DevicePtr(0))..=(most, DevicePtr(u64::MAX)))
            .next()?;
        self.cached.remove(&block);
        self.active.insert(block.1, block.0);
        self.usage.allocated += block.0;
        Some(block.1)
    }

    fn report(
        &self,
        device: &impl DeviceMemory,
        requested: u64,
    ) -> Result<WorkloadError, WorkloadError> {
        let info = device.info()?;
        Ok(WorkloadError::OutOfMemory(Box::new(OomReport {
            gpu: device.ordinal(),
            requested,
            total: info.total,
            free: info.free,
            allocated: self.usage.allocated,
            reserved: self.usage.reserved,
        })))
    }
}

/// `bytes` rounded up to whole blocks, at least one.
#[must_use]
pub fn rounded(bytes: u64) -> u64 {
    bytes.max(1).div_ceil(BLOCK).saturating_mul(BLOCK)
}

#[cfg(test)]
mod tests;
