//! Device and host memory.

use std::sync::atomic::Ordering::Relaxed;

use simgpu_core::AllocationKind;
use simgpu_core::fault::FaultKind;

use crate::call::Call;
use crate::code::{Code, Result};
use crate::context;
use crate::driver::{self, lock};
use crate::ffi::pointers::{In, Out};
use crate::heap::{self, Kind};
use crate::host;
use crate::stream;

/// Pitch is rounded up to this many bytes.
const PITCH: usize = 512;

fn allocate(call: &mut Call, pointer: Out<u64>, bytes: usize, kind: AllocationKind) -> Result<()> {
    call.arg("bytes", bytes);
    pointer.check()?;
    let (driver, context) = context::current()?;
    let address = heap::allocate(driver, &context, bytes as u64, kind, call)?;
    call.hex("pointer", address);
    pointer.set(address)
}

fn allocate_host(call: &mut Call, pointer: Out<u64>, bytes: usize, flags: u32) -> Result<()> {
    call.arg("bytes", bytes);
    call.arg("flags", flags);
    pointer.check()?;
    let (driver, _) = context::current()?;
    pointer.set(host::allocate(driver, bytes, flags)?)
}

export! {
    journalled fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) |call| {
        let (driver, context) = context::current()?;
        if let Some(code) = driver.process.fault(FaultKind::MemInfo, context.gpu) {
            return Err(Code(code as i32));
        }
        let left = driver.machine.free_bytes(context.gpu);
        call.free(left);
        // NULL is used in the field by callers who want only one of them.
        free.set_if_wanted(left as usize);
        total.set_if_wanted(driver.config(context.device)?.usable_bytes() as usize);
        Ok(())
    }

    journalled fn cuMemAlloc_v2(pointer: Out<u64>, bytes: usize) |call| {
        allocate(call, pointer, bytes, AllocationKind::Linear)
    }

    journalled fn cuMemAllocManaged(pointer: Out<u64>, bytes: usize, flags: u32) |call| {
        call.arg("flags", flags);
        allocate(call, pointer, bytes, AllocationKind::Managed)
    }

    journalled fn cuMemAllocPitch_v2(pointer: Out<u64>, pitch: Out<usize>, width: usize, height: usize, element: u32) |call| {
        call.arg("width", width);
        call.arg("height", height);
        pitch.check()?;
        if !matches!(element, 4 | 8 | 16) {
            return Err(Code::INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(PITCH).ok_or(Code::OUT_OF_MEMORY)?;
        let bytes = row.checked_mul(height).ok_or(Code::OUT_OF_MEMORY)?;
        allocate(call, pointer, bytes, AllocationKind::Linear)?;
        pitch.set(row)
    }

    journalled fn cuMemFree_v2(pointer: u64) |call| {
        call.hex("pointer", pointer);
        if pointer == 0 {
            return Ok(());
        }
        let driver = driver::get()?;
        let range = lock(&driver.heap).find(pointer, 0);
        // As the driver does: freeing waits for the work that may still use the memory.
        if let Some(range) = range.filter(|_| stream::CAPTURES.load(Relaxed) == 0) {
            stream::synchronise_context(driver, range.gpu);
        }
        heap::free(driver, pointer)
    }

    journalled fn cuMemGetAddressRange_v2(base: Out<u64>, bytes: Out<usize>, pointer: u64) |call| {
        call.hex("pointer", pointer);
        let range = lock(&driver::get()?.heap).find(pointer, 0).ok_or(Code::NOT_FOUND)?;
        base.set_if_wanted(range.base);
        bytes.set_if_wanted(range.bytes as usize);
        Ok(())
    }

    journalled fn cuMemHostAlloc(pointer: Out<u64>, bytes: usize, flags: u32) |call| {
        allocate_host(call, pointer, bytes, flags)
    }

    journalled fn cuMemAllocHost(pointer: Out<u64>, bytes: usize) |call| {
        allocate_host(call, pointer, bytes, 0)
    }

    journalled fn cuMemAllocHost_v2(pointer: Out<u64>, bytes: usize) |call| {
        allocate_host(call, pointer, bytes, 0)
    }

    journalled fn cuMemFreeHost(pointer: u64) |_call| {
        host::free(driver::get()?, pointer)
    }

    journalled fn cuMemHostRegister(pointer: u64, bytes: usize, flags: u32) |call| {
        call.arg("bytes", bytes);
        host::register(driver::get()?, pointer, bytes, flags)
    }

    journalled fn cuMemHostRegister_v2(pointer: u64, bytes: usize, flags: u32) |call| {
        call.arg("bytes", bytes);
        host::register(driver::get()?, pointer, bytes, flags)
    }

    journalled fn cuMemHostUnregister(pointer: u64) |_call| {
        host::unregister(driver::get()?, pointer)
    }

    journalled fn cuMemHostGetDevicePointer_v2(device: Out<u64>, host: u64, _flags: u32) |_call| {
        lock(&driver::get()?.host).flags(host).ok_or(Code::INVALID_VALUE)?;
        device.set(host)
    }

    journalled fn cuMemHostGetFlags(flags: Out<u32>, pointer: u64) |_call| {
        flags.set(lock(&driver::get()?.host).flags(pointer).ok_or(Code::INVALID_VALUE)?)
    }

    journalled fn cuPointerGetAttribute(value: Out<u64>, attribute: i32, pointer: u64) |call| {
        call.arg("attribute", attribute);
        write_attribute(value, attribute, pointer)
    }

    journalled fn cuPointerGetAttributes(count: u32, attributes: In<i32>, values: In<Out<u64>>, pointer: u64) |call| {
        call.arg("count", count);
        let attributes = attributes.all(count as usize)?;
        for (attribute, value) in attributes.into_iter().zip(values.all(count as usize)?) {
            // Of many, those that do not apply are left as they are.
            let _ = write_attribute(value, attribute, pointer);
        }
        Ok(())
    }

    journalled fn cuPointerSetAttribute(_value: u64, attribute: i32, pointer: u64) |call| {
        call.arg("attribute", attribute);
        lock(&driver::get()?.heap).find(pointer, 0).map(drop).ok_or(Code::INVALID_VALUE)
    }

    journalled fn cuMemAdvise(pointer: u64, bytes: usize, advice: i32, _device: i32) |call| {
        call.arg("advice", advice);
        lock(&driver::get()?.heap).find(pointer, bytes as u64).map(drop).ok_or(Code::INVALID_VALUE)
    }

    journalled fn cuMemAdvise_v2(pointer: u64, bytes: usize, advice: i32, _location: u64) |call| {
        call.arg("advice", advice);
        lock(&driver::get()?.heap).find(pointer, bytes as u64).map(drop).ok_or(Code::INVALID_VALUE)
    }

    journalled [stream] fn cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz(pointer: u64, bytes: usize, _device: i32, stream: u64) |_call| {
        stream::get(stream)?;
        lock(&driver::get()?.heap).find(pointer, bytes as u64).map(drop).ok_or(Code::INVALID_VALUE)
    }

    journalled [stream] fn cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz(pointer: u64, bytes: usize, _location: u64, _flags: u32, stream: u64) |_call| {
        stream::get(stream)?;
        lock(&driver::get()?.heap).find(pointer, bytes as u64).map(drop).ok_or(Code::INVALID_VALUE)
    }
}

/// Writes one pointer attribute; some are 32 bits wide (values of `CUpointer_attribute`).
fn write_attribute(value: Out<u64>, attribute: i32, pointer: u64) -> Result<()> {
    let driver = driver::get()?;
    let device = lock(&driver.heap).find(pointer, 0);
    let host = lock(&driver.host).flags(pointer).is_some();
    if device.is_none() && !host {
        return Err(Code::INVALID_VALUE);
    }
    let narrow: Out<u32> = value.cast();
    match attribute {
        // CONTEXT
        1 => value.set(device.map_or(0, |r| r.context)),
        // MEMORY_TYPE: 1 host, 2 device
        2 => narrow.set(if device.is_some() { 2 } else { 1 }),
        // DEVICE_POINTER, HOST_POINTER
        3 => value.set(pointer),
        4 if host => value.set(pointer),
        // SYNC_MEMOPS
        6 => narrow.set(0),
        // BUFFER_ID
        7 => value.set(device.map_or(pointer, |r| r.base)),
        // IS_MANAGED
        8 => narrow.cast::<u8>().set(u8::from(
            device.is_some_and(|r| r.kind == Kind::Large(AllocationKind::Managed)),
        )),
        // DEVICE_ORDINAL
        9 => {
            let gpu = device.map_or(0, |r| r.gpu);
            narrow.set(driver.devices.iter().position(|g| *g == gpu).unwrap_or(0) as u32)
        }
        // IS_LEGACY_CUDA_IPC_CAPABLE
        10 => narrow.cast::<u8>().set(0),
        // RANGE_START_ADDR, RANGE_SIZE
        11 => value.set(device.map_or(pointer, |r| r.base)),
        12 => value.set(device.map_or(0, |r| r.bytes)),
        // MAPPED
        13 => narrow.cast::<u8>().set(1),
        // ALLOWED_HANDLE_TYPES
        14 => value.set(0),
        // MEMPOOL_HANDLE
        17 => value.set(match device.map(|r| r.kind) {
            Some(Kind::Pool(pool)) => pool,
            _ => 0,
        }),
        _ => Err(Code::INVALID_VALUE),
    }
}

unsupported! {
    cuIpcGetMemHandle cuIpcOpenMemHandle cuIpcOpenMemHandle_v2 cuIpcCloseMemHandle
    cuIpcGetEventHandle cuIpcOpenEventHandle
    cuImportExternalMemory cuDestroyExternalMemory cuExternalMemoryGetMappedBuffer
}
