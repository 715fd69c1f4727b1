//! Devices and their contexts.

use std::ffi::c_char;

use super::{Handle, Out, Place};
use crate::error::{Error, ok};
use crate::runtime;

/// `cudaDeviceScheduleMask | cudaDeviceMapHost | …`: what `cuDevicePrimaryCtxSetFlags` takes.
const CONTEXT_FLAGS: u32 = 0x7f;

fn peer_context(device: i32) -> crate::error::Result<Handle> {
    let driver = runtime::driver()?;
    let mut context = 0;
    ok((driver.primary_ctx_retain)(&mut context, device))?;
    // The reference is given back: a device whose memory is shared is in use anyway.
    ok((driver.primary_ctx_release)(device))?;
    Ok(context)
}

api! {
    bare fn cudaGetDeviceCount(count: Place) {
        let counted = runtime::driver().and_then(|driver| ok((driver.device_get_count)(count)));
        if counted.is_err() {
            Out::<i32>(count.cast()).set_if_wanted(0);
        }
        counted
    }

    bare fn cudaGetDevice(device: Out<i32>) {
        device.set(runtime::device()?)
    }

    bare fn cudaSetDevice(device: i32) {
        runtime::use_device(device)
    }

    bare fn cudaDeviceGetAttribute(value: Place, attribute: i32, device: i32) {
        ok((runtime::driver()?.device_get_attribute)(value, attribute, device))
    }

    bare fn cudaDeviceGetPCIBusId(text: Place, length: i32, device: i32) {
        ok((runtime::driver()?.device_get_pci_bus_id)(text, length, device))
    }

    bare fn cudaDeviceGetByPCIBusId(device: Place, text: *const c_char) {
        ok((runtime::driver()?.device_get_by_pci_bus_id)(device, text))
    }

    bare fn cudaDeviceCanAccessPeer(can: Place, device: i32, peer: i32) {
        ok((runtime::driver()?.device_can_access_peer)(can, device, peer))
    }

    bare fn cudaDeviceGetP2PAttribute(value: Place, attribute: i32, device: i32, peer: i32) {
        ok((runtime::driver()?.device_get_p2p_attribute)(value, attribute, device, peer))
    }

    fn cudaDeviceEnablePeerAccess(device: i32, flags: u32) |driver| {
        ok((driver.ctx_enable_peer_access)(peer_context(device)?, flags))
    }

    fn cudaDeviceDisablePeerAccess(device: i32) |driver| {
        ok((driver.ctx_disable_peer_access)(peer_context(device)?))
    }

    fn cudaDeviceSynchronize() |driver| { ok((driver.ctx_synchronize)()) }

    bare fn cudaDeviceReset() { runtime::reset() }

    bare fn cudaSetDeviceFlags(flags: u32) {
        ok((runtime::driver()?.primary_ctx_set_flags)(runtime::device()?, flags & CONTEXT_FLAGS))
    }

    bare fn cudaGetDeviceFlags(flags: Out<u32>) {
        let (mut found, mut active) = (0, 0);
        ok((runtime::driver()?.primary_ctx_get_state)(runtime::device()?, &mut found, &mut active))?;
        flags.set(found)
    }

    fn cudaDeviceGetLimit(value: Place, limit: i32) |driver| {
        ok((driver.ctx_get_limit)(value, limit))
    }

    fn cudaDeviceSetLimit(limit: i32, value: usize) |driver| {
        ok((driver.ctx_set_limit)(limit, value))
    }

    fn cudaDeviceGetStreamPriorityRange(least: Place, greatest: Place) |driver| {
        ok((driver.ctx_get_stream_priority_range)(least, greatest))
    }

    bare fn cudaDeviceGetDefaultMemPool(pool: Place, device: i32) {
        ok((runtime::driver()?.device_get_default_mem_pool)(pool, device))
    }

    bare fn cudaDeviceGetMemPool(pool: Place, device: i32) {
        ok((runtime::driver()?.device_get_mem_pool)(pool, device))
    }

    bare fn cudaDeviceSetMemPool(device: i32, pool: Handle) {
        ok((runtime::driver()?.device_set_mem_pool)(device, pool))
    }

    bare fn cudaInitDevice(device: i32, _device_flags: u32, flags: u32) {
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        runtime::use_device(device)
    }
}
