//! Virtual memory management.

use crate::code::Code;
use crate::driver::{self, lock};
use crate::ffi::pointers::{In, Out};
use crate::vmm;

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Properties {
    allocation_type: i32,
    handle_types: i32,
    location_type: i32,
    location_id: i32,
    win32_metadata: u64,
    flags: [u8; 8],
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Access {
    location_type: i32,
    location_id: i32,
    flags: i32,
}

/// `CU_MEM_LOCATION_TYPE_DEVICE`.
pub(super) const DEVICE: i32 = 1;
/// `CU_MEM_LOCATION_TYPE_HOST`, `…_HOST_NUMA`, `…_HOST_NUMA_CURRENT`.
pub(super) const HOST: std::ops::RangeInclusive<i32> = 2..=4;

export! {
    journalled fn cuMemAddressReserve(pointer: Out<u64>, bytes: usize, alignment: usize, wanted: u64, _flags: u64) |call| {
        call.arg("bytes", bytes);
        pointer.check()?;
        let base = vmm::reserve(driver::get()?, bytes as u64, alignment as u64, wanted)?;
        call.hex("pointer", base);
        pointer.set(base)
    }

    journalled fn cuMemAddressFree(pointer: u64, bytes: usize) |call| {
        call.hex("pointer", pointer);
        call.arg("bytes", bytes);
        vmm::unreserve(driver::get()?, pointer, bytes as u64)
    }

    journalled fn cuMemCreate(handle: Out<u64>, bytes: usize, properties: In<Properties>, _flags: u64) |call| {
        call.arg("bytes", bytes);
        let driver = driver::get()?;
        handle.check()?;
        let properties = properties.get()?;
        call.arg("location", properties.location_type);
        call.arg("device", properties.location_id);
        let device = match properties.location_type {
            DEVICE => Some(properties.location_id),
            kind if HOST.contains(&kind) => None,
            _ => return Err(Code::INVALID_VALUE),
        };
        let made = vmm::create(driver, device, bytes as u64, call)?;
        call.hex("handle", made);
        handle.set(made)
    }

    journalled fn cuMemRelease(handle: u64) |call| {
        call.hex("handle", handle);
        vmm::release(driver::get()?, handle)
    }

    journalled fn cuMemMap(pointer: u64, bytes: usize, offset: usize, handle: u64, _flags: u64) |call| {
        call.hex("pointer", pointer);
        call.arg("bytes", bytes);
        call.hex("handle", handle);
        vmm::map(driver::get()?, pointer, bytes as u64, offset as u64, handle)
    }

    journalled fn cuMemUnmap(pointer: u64, bytes: usize) |call| {
        call.hex("pointer", pointer);
        call.arg("bytes", bytes);
        vmm::unmap(driver::get()?, pointer, bytes as u64)
    }

    journalled fn cuMemSetAccess(pointer: u64, bytes: usize, descriptors: In<Access>, count: usize) |call| {
        call.hex("pointer", pointer);
        call.arg("bytes", bytes);
        let driver = driver::get()?;
        for access in descriptors.all(count)? {
            if access.location_type == DEVICE {
                driver.gpu(access.location_id)?;
            }
        }
        let mapped = lock(&driver.physical).is_mapped(pointer, bytes as u64);
        if mapped { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }

    journalled fn cuMemGetAccess(flags: Out<u64>, _location: In<Access>, pointer: u64) |call| {
        call.hex("pointer", pointer);
        let mapped = lock(&driver::get()?.physical).is_mapped(pointer, 1);
        // 3 = read and write, 0 = none
        flags.set(if mapped { 3 } else { 0 })
    }

    journalled fn cuMemGetAllocationGranularity(granularity: Out<usize>, _properties: In<Properties>, _option: i32) |_call| {
        driver::get()?;
        granularity.set(vmm::GRANULARITY as usize)
    }

    journalled fn cuMemRetainAllocationHandle(handle: Out<u64>, pointer: u64) |call| {
        call.hex("pointer", pointer);
        handle.check()?;
        let retained = vmm::retain(driver::get()?, pointer)?;
        call.hex("handle", retained);
        handle.set(retained)
    }

    journalled fn cuMemGetAllocationPropertiesFromHandle(properties: Out<Properties>, handle: u64) |call| {
        call.hex("handle", handle);
        let device = vmm::device_of(driver::get()?, handle)?;
        properties.set(Properties {
            allocation_type: 1,
            handle_types: 0,
            location_type: if device < 0 { 2 } else { DEVICE },
            location_id: device.max(0),
            win32_metadata: 0,
            flags: [0; 8],
        })
    }
}

unsupported! {
    cuMemExportToShareableHandle cuMemImportFromShareableHandle cuMemGetHandleForAddressRange
    cuMulticastCreate cuMulticastAddDevice cuMulticastBindMem cuMulticastBindAddr cuMulticastUnbind
    cuMulticastGetGranularity cuMemMapArrayAsync cuMemMapArrayAsync_ptsz
}
