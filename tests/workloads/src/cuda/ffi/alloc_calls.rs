//! One safe method per call of the stream-ordered and virtual-memory families.

use std::ffi::c_int;
use std::ptr;

use super::api::{AccessDesc, AllocApi, AllocationProp, Location};
use super::calls::{Stream, check};
use crate::error::WorkloadError;

/// `CU_MEM_LOCATION_TYPE_DEVICE`.
const DEVICE: c_int = 1;
/// `CU_MEM_ALLOCATION_TYPE_PINNED`.
const PINNED: c_int = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
const READ_WRITE: c_int = 3;

impl AllocApi {
    /// `cuMemAllocAsync`
    ///
    /// # Errors
    /// [`WorkloadError::NoMemory`], or the driver's code.
    pub fn allocate_async(&self, bytes: usize, stream: Stream) -> Result<u64, WorkloadError> {
        let mut address = 0;
        // SAFETY: the output lives through the call; a stream of the current context.
        let code = unsafe { (self.mem_alloc_async)(&raw mut address, bytes, stream.0) };
        check("cuMemAllocAsync", code)?;
        Ok(address)
    }

    /// `cuMemFreeAsync`
    ///
    /// # Errors
    /// The driver's code.
    pub fn release_async(&self, address: u64, stream: Stream) -> Result<(), WorkloadError> {
        // SAFETY: an address is a number to the driver, which checks it; a stream of the context.
        check("cuMemFreeAsync", unsafe {
            (self.mem_free_async)(address, stream.0)
        })
    }

    /// `cuMemAddressReserve` at an address of the driver's choice.
    ///
    /// # Errors
    /// The driver's code.
    pub fn reserve(&self, bytes: usize) -> Result<u64, WorkloadError> {
        let mut address = 0;
        // SAFETY: the output lives through the call.
        let code = unsafe { (self.address_reserve)(&raw mut address, bytes, 0, 0, 0) };
        check("cuMemAddressReserve", code)?;
        Ok(address)
    }

    /// `cuMemAddressFree`
    ///
    /// # Errors
    /// The driver's code.
    pub fn unreserve(&self, address: u64, bytes: usize) -> Result<(), WorkloadError> {
        // SAFETY: numbers that the driver checks.
        check("cuMemAddressFree", unsafe {
            (self.address_free)(address, bytes)
        })
    }

    /// `cuMemCreate` of memory on `device`.
    ///
    /// # Errors
    /// [`WorkloadError::NoMemory`], or the driver's code.
    pub fn create(&self, device: c_int, bytes: usize) -> Result<u64, WorkloadError> {
        let prop = AllocationProp {
            kind: PINNED,
            handle_types: 0,
            location: Location {
                kind: DEVICE,
                id: device,
            },
            win32_metadata: ptr::null_mut(),
            flags: [0; 8],
        };
        let mut handle = 0;
        // SAFETY: the output and the properties live through the call.
        let code = unsafe { (self.mem_create)(&raw mut handle, bytes, &raw const prop, 0) };
        check("cuMemCreate", code)?;
        Ok(handle)
    }

    /// `cuMemRelease`
    ///
    /// # Errors
    /// The driver's code.
    pub fn release_handle(&self, handle: u64) -> Result<(), WorkloadError> {
        // SAFETY: a handle is a number to the driver, which checks it.
        check("cuMemRelease", unsafe { (self.mem_release)(handle) })
    }

    /// `cuMemMap` of all of `handle`.
    ///
    /// # Errors
    /// The driver's code.
    pub fn map(&self, address: u64, bytes: usize, handle: u64) -> Result<(), WorkloadError> {
        // SAFETY: numbers that the driver checks.
        check("cuMemMap", unsafe {
            (self.mem_map)(address, bytes, 0, handle, 0)
        })
    }

    /// `cuMemUnmap`
    ///
    /// # Errors
    /// The driver's code.
    pub fn unmap(&self, address: u64, bytes: usize) -> Result<(), WorkloadError> {
        // SAFETY: numbers that the driver checks; nothing queued uses the range.
        check("cuMemUnmap", unsafe { (self.mem_unmap)(address, bytes) })
    }

    /// `cuMemSetAccess` for `device` itself.
    ///
    /// # Errors
    /// The driver's code.
    pub fn allow(&self, address: u64, bytes: usize, device: c_int) -> Result<(), WorkloadError> {
        let access = AccessDesc {
            location: Location {
                kind: DEVICE,
                id: device,
            },
            flags: READ_WRITE,
        };
        // SAFETY: one descriptor, which lives through the call.
        let code = unsafe { (self.mem_set_access)(address, bytes, &raw const access, 1) };
        check("cuMemSetAccess", code)
    }
}
