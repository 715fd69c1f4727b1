//! Contexts.

use std::ffi::c_void;

use crate::code::Code;
use crate::context;
use crate::driver;
use crate::ffi::pointers::{In, Out};
use crate::stream::synchronise_context;

/// `cuCtxGetApiVersion`: the ABI of contexts since CUDA 3.2.
const API_VERSION: u32 = 3020;

fn create(
    result: Out<u64>,
    flags: u32,
    device: i32,
    call: &mut crate::call::Call,
) -> crate::code::Result<()> {
    call.arg("flags", flags);
    call.arg("device", device);
    result.check()?;
    let handle = context::create(device, flags)?;
    call.hex("context", handle);
    result.set(handle)
}

fn synchronise(handle: u64) -> crate::code::Result<()> {
    let (driver, context) = context::named_or_current(handle)?;
    if crate::stream::CAPTURES.load(std::sync::atomic::Ordering::Relaxed) != 0
        && crate::stream::is_capturing_on(context.gpu)
    {
        return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
    }
    synchronise_context(driver, context.gpu);
    crate::pool::synchronised(driver, context.gpu);
    Ok(())
}

export! {
    journalled fn cuDevicePrimaryCtxRetain(result: Out<u64>, device: i32) |call| {
        call.arg("device", device);
        result.check()?;
        let handle = context::retain_primary(device)?;
        call.hex("context", handle);
        result.set(handle)
    }

    journalled fn cuDevicePrimaryCtxRelease(device: i32) |call| {
        call.arg("device", device);
        context::release_primary(device, false)
    }

    journalled fn cuDevicePrimaryCtxRelease_v2(device: i32) |call| {
        call.arg("device", device);
        context::release_primary(device, false)
    }

    journalled fn cuDevicePrimaryCtxReset(device: i32) |call| {
        call.arg("device", device);
        context::release_primary(device, true)
    }

    journalled fn cuDevicePrimaryCtxReset_v2(device: i32) |call| {
        call.arg("device", device);
        context::release_primary(device, true)
    }

    journalled fn cuDevicePrimaryCtxSetFlags(device: i32, flags: u32) |call| {
        call.arg("device", device);
        call.arg("flags", flags);
        context::set_primary_flags(device, flags)
    }

    journalled fn cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32) |call| {
        call.arg("device", device);
        call.arg("flags", flags);
        context::set_primary_flags(device, flags)
    }

    journalled fn cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, active: Out<i32>) |call| {
        call.arg("device", device);
        let (now, is_active) = context::primary_state(device)?;
        flags.set(now)?;
        active.set(i32::from(is_active))
    }

    journalled fn cuCtxCreate(result: Out<u64>, flags: u32, device: i32) |call| {
        create(result, flags, device, call)
    }

    journalled fn cuCtxCreate_v2(result: Out<u64>, flags: u32, device: i32) |call| {
        create(result, flags, device, call)
    }

    journalled fn cuCtxCreate_v3(result: Out<u64>, _params: In<c_void>, _count: i32, flags: u32, device: i32) |call| {
        create(result, flags, device, call)
    }

    journalled fn cuCtxCreate_v4(result: Out<u64>, _params: In<c_void>, flags: u32, device: i32) |call| {
        create(result, flags, device, call)
    }

    journalled fn cuCtxDestroy(context: u64) |call| {
        call.hex("context", context);
        context::destroy(context)
    }

    journalled fn cuCtxDestroy_v2(context: u64) |call| {
        call.hex("context", context);
        context::destroy(context)
    }

    counted fn cuCtxPushCurrent(context: u64) {
        context::push(context)
    }

    counted fn cuCtxPushCurrent_v2(context: u64) {
        context::push(context)
    }

    counted fn cuCtxPopCurrent(context: Out<u64>) {
        context.set_if_wanted(context::pop()?);
        Ok(())
    }

    counted fn cuCtxPopCurrent_v2(context: Out<u64>) {
        context.set_if_wanted(context::pop()?);
        Ok(())
    }

    counted fn cuCtxSetCurrent(context: u64) {
        context::set_current(context)
    }

    counted fn cuCtxGetCurrent(context: Out<u64>) {
        driver::get()?;
        context.set(context::current_handle())
    }

    counted fn cuCtxGetDevice(device: Out<i32>) {
        device.set(context::current()?.1.device)
    }

    counted fn cuCtxGetDevice_v2(device: Out<i32>, context: u64) {
        device.set(context::named_or_current(context)?.1.device)
    }

    journalled fn cuCtxSynchronize() |_call| {
        synchronise(0)
    }

    journalled fn cuCtxSynchronize_v2(context: u64) |_call| {
        synchronise(context)
    }

    journalled fn cuCtxGetApiVersion(context: u64, version: Out<u32>) |call| {
        call.hex("context", context);
        context::named_or_current(context)?;
        version.set(API_VERSION)
    }

    journalled fn cuCtxGetFlags(flags: Out<u32>) |_call| {
        flags.set(context::current()?.1.flags)
    }

    journalled fn cuCtxGetId(context: u64, id: Out<u64>) |call| {
        call.hex("context", context);
        id.set(context::named_or_current(context)?.1.handle)
    }

    journalled fn cuCtxSetFlags(flags: u32) |call| {
        call.arg("flags", flags);
        context::current().map(drop)
    }

    journalled fn cuCtxGetLimit(value: Out<usize>, limit: i32) |call| {
        call.arg("limit", limit);
        context::current()?;
        // Stack, printf buffer, malloc heap, sync depth, pending launches, L2 fetch, persisting L2.
        let found = match limit {
            0 => 1 << 10,
            1 => 1 << 20,
            2 => 8 << 20,
            3 => 2,
            4 => 2048,
            5 => 64,
            6 => 0,
            _ => return Err(Code::INVALID_VALUE),
        };
        value.set(found)
    }

    journalled fn cuCtxSetLimit(limit: i32, value: usize) |call| {
        call.arg("limit", limit);
        call.arg("value", value);
        context::current().map(drop)
    }

    journalled fn cuCtxGetCacheConfig(value: Out<i32>) |_call| {
        context::current()?;
        value.set(0)
    }

    journalled fn cuCtxSetCacheConfig(value: i32) |call| {
        call.arg("value", value);
        context::current().map(drop)
    }

    journalled fn cuCtxGetSharedMemConfig(value: Out<i32>) |_call| {
        context::current()?;
        value.set(1)
    }

    journalled fn cuCtxSetSharedMemConfig(value: i32) |call| {
        call.arg("value", value);
        context::current().map(drop)
    }

    journalled fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) |_call| {
        context::current()?;
        least.set_if_wanted(0);
        greatest.set_if_wanted(-5);
        Ok(())
    }

    journalled fn cuCtxEnablePeerAccess(peer: u64, flags: u32) |call| {
        call.hex("peer", peer);
        call.arg("flags", flags);
        context::current()?;
        context::named_or_current(peer).map(drop)
    }

    journalled fn cuCtxDisablePeerAccess(peer: u64) |call| {
        call.hex("peer", peer);
        context::named_or_current(peer).map(drop)
    }

    journalled fn cuCtxResetPersistingL2Cache() |_call| {
        context::current().map(drop)
    }
}
