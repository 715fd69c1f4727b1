//! Stream-ordered allocation.

use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;

use crate::call::Call;
use crate::code::{Code, Result};
use crate::context;
use crate::driver;
use crate::ffi::pointers::{In, Out};
use crate::ffi::vmm::{DEVICE, HOST};
use crate::heap;
use crate::pool;
use crate::stream;

/// `CUmemPoolProps`, the part that is read.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Properties {
    allocation_type: i32,
    handle_types: i32,
    location_type: i32,
    location_id: i32,
}

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Location {
    kind: i32,
    id: i32,
}

/// The device of a location that pools of pinned memory (1) can be on.
fn device_of(location: In<Location>, allocation_type: i32) -> Result<i32> {
    let location = location.get()?;
    if location.kind != DEVICE || allocation_type != 1 {
        return Err(Code::NOT_SUPPORTED);
    }
    driver::get()?.gpu(location.id)?;
    Ok(location.id)
}

fn allocate(
    call: &mut Call,
    pointer: Out<u64>,
    bytes: usize,
    pool: u64,
    stream: u64,
) -> Result<()> {
    call.arg("bytes", bytes);
    pointer.check()?;
    let (driver, of_stream) = stream::get(stream)?;
    if of_stream.capture.load(Relaxed) != 0 {
        // Memory nodes are not simulated.
        return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
    }
    let context = match of_stream.context() {
        0 => context::current()?.1,
        handle => context::named_or_current(handle)?.1,
    };
    let pool = if pool == 0 {
        pool::current(driver, context.device)?
    } else {
        pool
    };
    let address = pool::allocate(driver, &context, pool, bytes as u64, call)?;
    call.hex("pointer", address);
    pointer.set(address)
}

export! {
    journalled [stream] fn cuMemAllocAsync, cuMemAllocAsync_ptsz(pointer: Out<u64>, bytes: usize, stream: u64) |call| {
        allocate(call, pointer, bytes, 0, stream)
    }

    journalled [stream] fn cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz(pointer: Out<u64>, bytes: usize, pool: u64, stream: u64) |call| {
        call.hex("pool", pool);
        if pool == 0 {
            return Err(Code::INVALID_VALUE);
        }
        allocate(call, pointer, bytes, pool, stream)
    }

    journalled [stream] fn cuMemFreeAsync, cuMemFreeAsync_ptsz(pointer: u64, stream: u64) |call| {
        call.hex("pointer", pointer);
        let (driver, of_stream) = stream::get(stream)?;
        if of_stream.capture.load(Relaxed) != 0 {
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        heap::free(driver, pointer)
    }

    journalled fn cuDeviceGetDefaultMemPool(result: Out<u64>, device: i32) |call| {
        call.arg("device", device);
        driver::get()?.gpu(device)?;
        result.set(pool::default_of(device))
    }

    journalled fn cuDeviceGetMemPool(result: Out<u64>, device: i32) |call| {
        call.arg("device", device);
        result.set(pool::current(driver::get()?, device)?)
    }

    journalled fn cuDeviceSetMemPool(device: i32, pool: u64) |call| {
        call.arg("device", device);
        call.hex("pool", pool);
        pool::set_current(driver::get()?, device, pool)
    }

    journalled fn cuMemGetDefaultMemPool(result: Out<u64>, location: In<Location>, allocation_type: i32) |call| {
        let device = device_of(location, allocation_type)?;
        call.arg("device", device);
        result.set(pool::default_of(device))
    }

    journalled fn cuMemGetMemPool(result: Out<u64>, location: In<Location>, allocation_type: i32) |call| {
        let device = device_of(location, allocation_type)?;
        call.arg("device", device);
        result.set(pool::current(driver::get()?, device)?)
    }

    journalled fn cuMemSetMemPool(location: In<Location>, allocation_type: i32, pool: u64) |call| {
        let device = device_of(location, allocation_type)?;
        call.arg("device", device);
        call.hex("pool", pool);
        pool::set_current(driver::get()?, device, pool)
    }

    journalled fn cuMemPoolCreate(result: Out<u64>, properties: In<Properties>) |call| {
        let driver = driver::get()?;
        result.check()?;
        let properties = properties.get()?;
        call.arg("location", properties.location_type);
        // 1 pinned memory.
        if properties.allocation_type != 1 || properties.handle_types != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let device = match properties.location_type {
            DEVICE => Some(properties.location_id),
            kind if HOST.contains(&kind) => None,
            _ => return Err(Code::INVALID_VALUE),
        };
        let pool = pool::create(driver, device)?;
        call.hex("pool", pool);
        result.set(pool)
    }

    journalled fn cuMemPoolDestroy(pool: u64) |call| {
        call.hex("pool", pool);
        pool::destroy(driver::get()?, pool)
    }

    journalled fn cuMemPoolTrimTo(pool: u64, keep: usize) |call| {
        call.hex("pool", pool);
        call.arg("keep", keep);
        pool::trim(driver::get()?, pool, keep as u64)
    }

    journalled fn cuMemPoolGetAttribute(pool: u64, attribute: u32, value: Out<u64>) |call| {
        call.arg("attribute", attribute);
        let found = pool::attribute(driver::get()?, pool, attribute)?;
        if attribute < pool::RELEASE_THRESHOLD { value.cast::<u32>().set(found as u32) } else { value.set(found) }
    }

    journalled fn cuMemPoolSetAttribute(pool: u64, attribute: u32, value: In<u64>) |call| {
        call.arg("attribute", attribute);
        let wanted = match attribute {
            0..pool::RELEASE_THRESHOLD => u64::from(value.cast::<u32>().get()?),
            _ => value.get()?,
        };
        call.arg("value", wanted);
        pool::set_attribute(driver::get()?, pool, attribute, wanted)
    }

    journalled fn cuMemPoolSetAccess(pool: u64, _descriptors: In<c_void>, count: usize) |call| {
        call.hex("pool", pool);
        call.arg("count", count);
        pool::attribute(driver::get()?, pool, pool::RELEASE_THRESHOLD).map(drop)
    }

    journalled fn cuMemPoolGetAccess(flags: Out<i32>, pool: u64, _location: In<c_void>) |call| {
        call.hex("pool", pool);
        pool::attribute(driver::get()?, pool, pool::RELEASE_THRESHOLD)?;
        // 3 = read and write
        flags.set(3)
    }
}

unsupported! {
    cuMemPoolExportToShareableHandle cuMemPoolImportFromShareableHandle
    cuMemPoolExportPointer cuMemPoolImportPointer
}
