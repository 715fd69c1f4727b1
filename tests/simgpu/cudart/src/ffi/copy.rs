//! Copies.

use super::Handle;
use super::driver::{Copy2d, Driver};
use crate::error::{Error, Result, ok};
use crate::registry;
use crate::runtime;

/// `cudaMemcpyKind`.
const HOST_TO_HOST: i32 = 0;
const HOST_TO_DEVICE: i32 = 1;
const DEVICE_TO_HOST: i32 = 2;
const DEVICE_TO_DEVICE: i32 = 3;
const DEFAULT: i32 = 4;

fn copy(driver: &Driver, to: Handle, from: Handle, bytes: usize, kind: i32) -> Result<()> {
    ok(match kind {
        HOST_TO_DEVICE => (driver.memcpy_h2d)(to, from, bytes),
        DEVICE_TO_HOST => (driver.memcpy_d2h)(to, from, bytes),
        DEVICE_TO_DEVICE => (driver.memcpy_d2d)(to, from, bytes),
        HOST_TO_HOST | DEFAULT => (driver.memcpy)(to, from, bytes),
        _ => return Err(Error::INVALID_DIRECTION),
    })
}

fn copy_async(
    driver: &Driver,
    to: Handle,
    from: Handle,
    bytes: usize,
    kind: i32,
    stream: Handle,
) -> Result<()> {
    ok(match kind {
        HOST_TO_DEVICE => (driver.memcpy_h2d_async)(to, from, bytes, stream),
        DEVICE_TO_HOST => (driver.memcpy_d2h_async)(to, from, bytes, stream),
        DEVICE_TO_DEVICE => (driver.memcpy_d2d_async)(to, from, bytes, stream),
        HOST_TO_HOST | DEFAULT => (driver.memcpy_async)(to, from, bytes, stream),
        _ => return Err(Error::INVALID_DIRECTION),
    })
}

/// `CU_MEMORYTYPE_UNIFIED`: the driver sees from the address where it is.
const UNIFIED: u32 = 4;

fn rows(
    to: Handle,
    to_pitch: usize,
    from: Handle,
    from_pitch: usize,
    width: usize,
    height: usize,
) -> Copy2d {
    Copy2d {
        from_kind: UNIFIED,
        from_device: from,
        from_pitch,
        to_kind: UNIFIED,
        to_device: to,
        to_pitch,
        width,
        height,
        ..Copy2d::default()
    }
}

/// The place in a variable's counterpart on the device.
fn inside(symbol: usize, bytes: usize, offset: usize) -> Result<Handle> {
    let (address, size) = registry::variable(symbol)?;
    let end = offset.checked_add(bytes).ok_or(Error::INVALID_VALUE)?;
    if end > size {
        return Err(Error::INVALID_VALUE);
    }
    Ok(address + offset as u64)
}

/// The primary context of a device.
fn context_of(device: i32) -> Result<Handle> {
    let driver = runtime::driver()?;
    let before = runtime::device()?;
    runtime::use_device(device)?;
    let mut context = 0;
    ok((driver.ctx_get_current)(&mut context))?;
    runtime::use_device(before)?;
    Ok(context)
}

api! {
    fn cudaMemcpy, cudaMemcpy_ptds(to: Handle, from: Handle, bytes: usize, kind: i32) |driver| {
        copy(driver, to, from, bytes, kind)
    }

    fn cudaMemcpyAsync, cudaMemcpyAsync_ptsz(to: Handle, from: Handle, bytes: usize, kind: i32, stream: Handle) |driver| {
        copy_async(driver, to, from, bytes, kind, stream)
    }

    fn cudaMemcpy2D, cudaMemcpy2D_ptds(to: Handle, to_pitch: usize, from: Handle, from_pitch: usize, width: usize, height: usize, _kind: i32) |driver| {
        ok((driver.memcpy_2d)(&rows(to, to_pitch, from, from_pitch, width, height)))
    }

    fn cudaMemcpy2DAsync, cudaMemcpy2DAsync_ptsz(to: Handle, to_pitch: usize, from: Handle, from_pitch: usize, width: usize, height: usize, _kind: i32, stream: Handle) |driver| {
        ok((driver.memcpy_2d_async)(&rows(to, to_pitch, from, from_pitch, width, height), stream))
    }

    fn cudaMemcpyPeer(to: Handle, to_device: i32, from: Handle, from_device: i32, bytes: usize) |driver| {
        ok((driver.memcpy_peer)(to, context_of(to_device)?, from, context_of(from_device)?, bytes))
    }

    fn cudaMemcpyPeerAsync(to: Handle, to_device: i32, from: Handle, from_device: i32, bytes: usize, stream: Handle) |driver| {
        ok((driver.memcpy_peer_async)(to, context_of(to_device)?, from, context_of(from_device)?, bytes, stream))
    }

    fn cudaMemcpyToSymbol, cudaMemcpyToSymbol_ptds(symbol: usize, from: Handle, bytes: usize, offset: usize, kind: i32) |driver| {
        copy(driver, inside(symbol, bytes, offset)?, from, bytes, kind)
    }

    fn cudaMemcpyFromSymbol, cudaMemcpyFromSymbol_ptds(to: Handle, symbol: usize, bytes: usize, offset: usize, kind: i32) |driver| {
        copy(driver, to, inside(symbol, bytes, offset)?, bytes, kind)
    }

    fn cudaMemcpyToSymbolAsync, cudaMemcpyToSymbolAsync_ptsz(symbol: usize, from: Handle, bytes: usize, offset: usize, kind: i32, stream: Handle) |driver| {
        copy_async(driver, inside(symbol, bytes, offset)?, from, bytes, kind, stream)
    }

    fn cudaMemcpyFromSymbolAsync, cudaMemcpyFromSymbolAsync_ptsz(to: Handle, symbol: usize, bytes: usize, offset: usize, kind: i32, stream: Handle) |driver| {
        copy_async(driver, to, inside(symbol, bytes, offset)?, bytes, kind, stream)
    }
}
