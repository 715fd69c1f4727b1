//! A GPU for unit tests: memory is a counter, launches and copies are recorded.

use std::collections::BTreeMap;

use crate::device::{AllocError, Device, DeviceMemory, DevicePtr, MemoryInfo};
use crate::error::WorkloadError;
use crate::kernel::KernelDemand;

/// A fake GPU.
#[derive(Debug, Default)]
pub(crate) struct FakeGpu {
    capacity: u64,
    live: BTreeMap<DevicePtr, u64>,
    next: u64,
    alloc_calls: u64,
    fail_next: Option<u32>,
    peak: u64,
    contents: BTreeMap<DevicePtr, Vec<u8>>,
    /// Makes each download return this byte first, as a broken copy would.
    pub(crate) corrupt: Option<u8>,
    /// Every kernel launched.
    pub(crate) launched: Vec<KernelDemand>,
}

impl FakeGpu {
    /// A GPU with `capacity` bytes.
    pub(crate) fn new(capacity: u64) -> Self {
        Self {
            capacity,
            ..Self::default()
        }
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> u64 {
        self.live.values().sum()
    }

    /// The most bytes that were in use.
    pub(crate) fn peak(&self) -> u64 {
        self.peak
    }

    /// Calls of `alloc`, refused ones included.
    pub(crate) fn alloc_calls(&self) -> u64 {
        self.alloc_calls
    }

    /// The size of a live allocation.
    pub(crate) fn size_of(&self, ptr: DevicePtr) -> Option<u64> {
        self.live.get(&ptr).copied()
    }

    /// Makes the next `alloc` fail with `code`.
    pub(crate) fn fail_next_alloc(&mut self, code: u32) {
        self.fail_next = Some(code);
    }
}

impl DeviceMemory for FakeGpu {
    fn ordinal(&self) -> u32 {
        0
    }

    fn alloc(&mut self, bytes: u64) -> Result<DevicePtr, AllocError> {
        self.alloc_calls += 1;
        if let Some(code) = self.fail_next.take() {
            return Err(AllocError::Other(WorkloadError::Driver {
                call: "cuMemAlloc",
                code,
                name: "unknown",
            }));
        }
        if self.used() + bytes > self.capacity {
            return Err(AllocError::OutOfMemory);
        }
        self.next += 1;
        let ptr = DevicePtr(self.next << 40);
        self.live.insert(ptr, bytes);
        self.peak = self.peak.max(self.used());
        Ok(ptr)
    }

    fn free(&mut self, ptr: DevicePtr) -> Result<(), WorkloadError> {
        self.contents.remove(&ptr);
        match self.live.remove(&ptr) {
            Some(_) => Ok(()),
            None => Err(WorkloadError::Driver {
                call: "cuMemFree",
                code: 1,
                name: "CUDA_ERROR_INVALID_VALUE",
            }),
        }
    }

    fn info(&self) -> Result<MemoryInfo, WorkloadError> {
        Ok(MemoryInfo {
            free: self.capacity - self.used(),
            total: self.capacity,
        })
    }
}

impl Device for FakeGpu {
    fn launch(&mut self, demand: &KernelDemand) -> Result<(), WorkloadError> {
        self.launched.push(*demand);
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn upload(&mut self, dst: DevicePtr, data: &[u8]) -> Result<(), WorkloadError> {
        self.contents.insert(dst, data.to_vec());
        Ok(())
    }

    fn download(&mut self, src: DevicePtr, into: &mut [u8]) -> Result<(), WorkloadError> {
        if let Some(data) = self.contents.get(&src) {
            for (to, from) in into.iter_mut().zip(data) {
                *to = *from;
            }
        }
        if let (Some(byte), Some(first)) = (self.corrupt, into.first_mut()) {
            *first = byte;
        }
        Ok(())
    }
}
