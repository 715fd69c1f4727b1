//! Copies: the data moves at once, the time is queued.

use std::sync::atomic::Ordering::Relaxed;

use crate::code::{Code, Result};
use crate::driver::{self, Driver, lock};
use crate::ffi::pointers::In;
use crate::graph::{self, Work};
use crate::heap::{Kind, is_device_address};
use crate::stream;

/// Fails unless `[address, address + bytes)` is device memory that can be accessed.
pub(super) fn check_device(driver: &Driver, address: u64, bytes: u64) -> Result<()> {
    let range = lock(&driver.heap)
        .find(address, bytes)
        .ok_or(Code::INVALID_VALUE)?;
    if range.kind == Kind::Reserved && !lock(&driver.physical).is_mapped(address, bytes) {
        return Err(Code::INVALID_VALUE);
    }
    Ok(())
}

/// Checks addresses of the arena; others are host memory, which the caller vouches for.
fn check(driver: &Driver, address: u64, bytes: u64) -> Result<()> {
    if is_device_address(address) {
        return check_device(driver, address, bytes);
    }
    if address == 0 {
        Err(Code::INVALID_VALUE)
    } else {
        Ok(())
    }
}

fn copy(to: u64, from: u64, bytes: usize, stream: u64, blocking: bool) -> Result<()> {
    let (driver, of_stream) = stream::get(stream)?;
    let bytes = bytes as u64;
    if bytes == 0 {
        return Ok(());
    }
    check(driver, to, bytes)?;
    check(driver, from, bytes)?;
    let capturing = of_stream.capture.load(Relaxed) != 0;
    if blocking && capturing {
        return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
    }
    driver.process.counters().copies.fetch_add(1, Relaxed);
    let within_device = is_device_address(to) && is_device_address(from);
    graph::submit(
        driver,
        of_stream,
        Work::Copy {
            to,
            from,
            bytes,
            within_device,
        },
    )?;
    // A copy within the device does not block its caller.
    if blocking && !within_device {
        of_stream.wait(driver);
    }
    Ok(())
}

/// A side of a 2D or 3D copy: where its first byte is and how far rows and slices are apart.
#[derive(Clone, Copy)]
struct Side {
    base: u64,
    pitch: u64,
    slice: u64,
}

fn copy_box(to: Side, from: Side, extent: [u64; 3], stream: u64, blocking: bool) -> Result<()> {
    let (driver, of_stream) = stream::get(stream)?;
    let [width, height, depth] = extent;
    for side in [to, from] {
        let last = side.slice * depth.saturating_sub(1) + side.pitch * height.saturating_sub(1);
        if width * height * depth > 0 {
            check(driver, side.base, last + width)?;
        }
    }
    driver.process.counters().copies.fetch_add(1, Relaxed);
    for z in 0..depth {
        for y in 0..height {
            let at = |side: Side| side.base + z * side.slice + y * side.pitch;
            let within_device = is_device_address(to.base) && is_device_address(from.base);
            let work = Work::Copy {
                to: at(to),
                from: at(from),
                bytes: width,
                within_device,
            };
            graph::submit(driver, of_stream, work)?;
        }
    }
    if blocking {
        of_stream.wait(driver);
    }
    Ok(())
}

/// `CU_MEMORYTYPE_HOST`, `…_DEVICE`, `…_UNIFIED`.
const HOST: u32 = 1;
const DEVICE: u32 = 2;
const UNIFIED: u32 = 4;

fn base_of(kind: u32, host: u64, device: u64) -> Result<u64> {
    match kind {
        HOST => Ok(host),
        DEVICE | UNIFIED => Ok(device),
        _ => Err(Code::NOT_SUPPORTED),
    }
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Copy2d {
    from_x: u64,
    from_y: u64,
    from_type: u32,
    from_host: u64,
    from_device: u64,
    from_array: u64,
    from_pitch: u64,
    to_x: u64,
    to_y: u64,
    to_type: u32,
    to_host: u64,
    to_device: u64,
    to_array: u64,
    to_pitch: u64,
    width: u64,
    height: u64,
}

fn copy_2d(params: In<Copy2d>, stream: u64, blocking: bool) -> Result<()> {
    let p = params.get()?;
    let side = |kind, host, device, x, y, pitch: u64| -> Result<Side> {
        let pitch = if pitch == 0 { p.width } else { pitch };
        Ok(Side {
            base: base_of(kind, host, device)? + y * pitch + x,
            pitch,
            slice: 0,
        })
    };
    let from = side(
        p.from_type,
        p.from_host,
        p.from_device,
        p.from_x,
        p.from_y,
        p.from_pitch,
    )?;
    let to = side(
        p.to_type,
        p.to_host,
        p.to_device,
        p.to_x,
        p.to_y,
        p.to_pitch,
    )?;
    copy_box(to, from, [p.width, p.height, 1], stream, blocking)
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Copy3d {
    from: Side3d,
    from_reserved: u64,
    from_pitch: u64,
    from_height: u64,
    to: Side3d,
    to_reserved: u64,
    to_pitch: u64,
    to_height: u64,
    extent: [u64; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Side3d {
    x: u64,
    y: u64,
    z: u64,
    level: u64,
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
}

fn copy_3d(params: In<Copy3d>, stream: u64, blocking: bool) -> Result<()> {
    let p = params.get()?;
    let side = |s: Side3d, pitch: u64, height: u64| -> Result<Side> {
        let pitch = if pitch == 0 { p.extent[0] } else { pitch };
        let slice = pitch * if height == 0 { p.extent[1] } else { height };
        Ok(Side {
            base: base_of(s.kind, s.host, s.device)? + s.z * slice + s.y * pitch + s.x,
            pitch,
            slice,
        })
    };
    let from = side(p.from, p.from_pitch, p.from_height)?;
    let to = side(p.to, p.to_pitch, p.to_height)?;
    copy_box(to, from, p.extent, stream, blocking)
}

export! {
    counted [stream = default] fn cuMemcpy, cuMemcpy_ptds(to: u64, from: u64, bytes: usize) {
        copy(to, from, bytes, stream, true)
    }
    counted [stream = default] fn cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds(to: u64, from: u64, bytes: usize) {
        copy(to, from, bytes, stream, true)
    }
    counted [stream = default] fn cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds(to: u64, from: u64, bytes: usize) {
        copy(to, from, bytes, stream, true)
    }
    counted [stream = default] fn cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds(to: u64, from: u64, bytes: usize) {
        copy(to, from, bytes, stream, true)
    }
    counted [stream = default] fn cuMemcpyPeer, cuMemcpyPeer_ptds(to: u64, _to_context: u64, from: u64, _from_context: u64, bytes: usize) {
        copy(to, from, bytes, stream, true)
    }
    counted [stream = default] fn cuMemcpy2D_v2, cuMemcpy2D_v2_ptds(params: In<Copy2d>) {
        copy_2d(params, stream, true)
    }
    counted [stream = default] fn cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds(params: In<Copy2d>) {
        copy_2d(params, stream, true)
    }
    counted [stream = default] fn cuMemcpy3D_v2, cuMemcpy3D_v2_ptds(params: In<Copy3d>) {
        copy_3d(params, stream, true)
    }
    counted [stream] fn cuMemcpyAsync, cuMemcpyAsync_ptsz(to: u64, from: u64, bytes: usize, stream: u64) {
        copy(to, from, bytes, stream, false)
    }
    counted [stream] fn cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz(to: u64, from: u64, bytes: usize, stream: u64) {
        copy(to, from, bytes, stream, false)
    }
    counted [stream] fn cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz(to: u64, from: u64, bytes: usize, stream: u64) {
        copy(to, from, bytes, stream, false)
    }
    counted [stream] fn cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz(to: u64, from: u64, bytes: usize, stream: u64) {
        copy(to, from, bytes, stream, false)
    }
    counted [stream] fn cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz(to: u64, _to_context: u64, from: u64, _from_context: u64, bytes: usize, stream: u64) {
        copy(to, from, bytes, stream, false)
    }
    counted [stream] fn cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz(params: In<Copy2d>, stream: u64) {
        copy_2d(params, stream, false)
    }
    counted [stream] fn cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz(params: In<Copy3d>, stream: u64) {
        copy_3d(params, stream, false)
    }
    journalled fn cuGraphAddMemcpyNode(node: super::pointers::Out<u64>, graph: u64, _dependencies: In<u64>, _count: usize, params: In<Copy3d>, _context: u64) |_call| {
        let driver = driver::get()?;
        let p = params.get()?;
        let (to, from) = (base_of(p.to.kind, p.to.host, p.to.device)?, base_of(p.from.kind, p.from.host, p.from.device)?);
        let bytes = p.extent.iter().product::<u64>();
        check(driver, to, bytes)?;
        check(driver, from, bytes)?;
        let within_device = is_device_address(to) && is_device_address(from);
        node.set(lock(&driver.graphs).add(graph, Work::Copy { to, from, bytes, within_device })?)
    }
    journalled fn cuGraphExecMemcpyNodeSetParams(executable: u64, node: u64, params: In<Copy3d>, _context: u64) |_call| {
        let driver = driver::get()?;
        let p = params.get()?;
        let (to, from) = (base_of(p.to.kind, p.to.host, p.to.device)?, base_of(p.from.kind, p.from.host, p.from.device)?);
        let bytes = p.extent.iter().product::<u64>();
        check(driver, to, bytes)?;
        check(driver, from, bytes)?;
        let within_device = is_device_address(to) && is_device_address(from);
        lock(&driver.graphs).set(executable, node, Work::Copy { to, from, bytes, within_device })
    }
}
