//! Allocation by one of the families, and its undoing.

use std::collections::BTreeMap;
use std::ffi::c_int;

use super::Backend;
use super::ffi::{AllocApi, Api, Stream};
use crate::error::WorkloadError;

/// Granularity of `cuMemCreate` on every GPU of the last ten years: the large page.
const PAGE: usize = 2 << 20;

/// A GPU's allocations by one family.
pub(super) enum Heap {
    /// `cuMemAlloc`.
    Native(Api),
    /// `cuMemAllocAsync`.
    Async(AllocApi, Stream),
    /// Virtual memory.
    Vmm(Segments),
}

impl Heap {
    /// A heap on `device`, whose context is current.
    pub(super) fn new(
        backend: Backend,
        (api, alloc): (Api, Option<AllocApi>),
        device: c_int,
        stream: Stream,
    ) -> Self {
        match (backend, alloc) {
            (Backend::Async, Some(alloc)) => Self::Async(alloc, stream),
            (Backend::Vmm, Some(alloc)) => Self::Vmm(Segments::new(alloc, device)),
            _ => Self::Native(api),
        }
    }

    /// Allocates on the current context.
    pub(super) fn alloc(&mut self, bytes: u64) -> Result<u64, WorkloadError> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        match self {
            Self::Native(api) => api.allocate(bytes),
            Self::Async(alloc, stream) => alloc.allocate_async(bytes, *stream),
            Self::Vmm(segments) => segments.alloc(bytes),
        }
    }

    /// Gives an allocation back.
    pub(super) fn free(&mut self, address: u64) -> Result<(), WorkloadError> {
        match self {
            Self::Native(api) => api.release(address),
            Self::Async(alloc, stream) => alloc.release_async(address, *stream),
            Self::Vmm(segments) => segments.free(address),
        }
    }
}

/// Mapped physical memory.
struct Segment {
    handle: u64,
    bytes: usize,
}

/// Virtual address ranges with memory behind them.
pub(super) struct Segments {
    alloc: AllocApi,
    device: c_int,
    mapped: BTreeMap<u64, Segment>,
}

impl Segments {
    fn new(alloc: AllocApi, device: c_int) -> Self {
        Self {
            alloc,
            device,
            mapped: BTreeMap::new(),
        }
    }

    /// Reserves, creates, maps and allows; on failure undoes what was done.
    fn alloc(&mut self, bytes: usize) -> Result<u64, WorkloadError> {
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE).unwrap_or(bytes);
        let address = self.alloc.reserve(bytes)?;
        let handle = match self.alloc.create(self.device, bytes) {
            Ok(handle) => handle,
            Err(error) => {
                self.alloc.unreserve(address, bytes)?;
                return Err(error);
            }
        };
        self.alloc.map(address, bytes, handle)?;
        self.alloc.allow(address, bytes, self.device)?;
        self.mapped.insert(address, Segment { handle, bytes });
        Ok(address)
    }

    fn free(&mut self, address: u64) -> Result<(), WorkloadError> {
        let Some(Segment { handle, bytes }) = self.mapped.remove(&address) else {
            return Err(WorkloadError::Driver {
                call: "cuMemUnmap",
                code: 1,
                name: "CUDA_ERROR_INVALID_VALUE",
            });
        };
        self.alloc.unmap(address, bytes)?;
        self.alloc.release_handle(handle)?;
        self.alloc.unreserve(address, bytes)
    }
}
