//! Arrays and mipmapped arrays.

use aegis_common::abi::ledger::Kind;
use shim_core::array::{Shape, array_bytes, mipmapped_bytes};

use crate::memory::{Request, allocate, free, here};

/// `CUDA_ARRAY_DESCRIPTOR` with sizes of type `T`.
#[repr(C)]
pub(super) struct Flat<T> {
    width: T,
    height: T,
    format: u32,
    channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR` with sizes of type `T`.
#[repr(C)]
pub(super) struct Solid<T> {
    width: T,
    height: T,
    depth: T,
    format: u32,
    channels: u32,
    flags: u32,
}

impl<T: Copy + Into<Extent>> Flat<T> {
    fn shape(&self) -> Shape {
        Shape {
            width: self.width.into().0,
            height: self.height.into().0,
            depth: 0,
            format: self.format,
            channels: self.channels,
            flags: 0,
        }
    }
}

impl<T: Copy + Into<Extent>> Solid<T> {
    fn shape(&self) -> Shape {
        Shape {
            width: self.width.into().0,
            height: self.height.into().0,
            depth: self.depth.into().0,
            format: self.format,
            channels: self.channels,
            flags: self.flags,
        }
    }
}

/// Elements along one dimension.
pub(super) struct Extent(u64);

impl From<u32> for Extent {
    fn from(value: u32) -> Self {
        Self(u64::from(value))
    }
}

impl From<usize> for Extent {
    fn from(value: usize) -> Self {
        Self(value as u64)
    }
}

pub(super) unsafe fn flat<T: Copy + Into<Extent>>(
    real: unsafe extern "C" fn(*mut u64, *const Flat<T>) -> i32,
    out: *mut u64,
    descriptor: *const Flat<T>,
) -> i32 {
    // SAFETY: null or the application's structure.
    let shape = unsafe { descriptor.as_ref() }.map(Flat::shape);
    // SAFETY: the application's own arguments.
    create(
        shape.and_then(|shape| array_bytes(&shape)),
        out,
        || unsafe { real(out, descriptor) },
    )
}

pub(super) unsafe fn solid<T: Copy + Into<Extent>>(
    real: unsafe extern "C" fn(*mut u64, *const Solid<T>) -> i32,
    out: *mut u64,
    descriptor: *const Solid<T>,
) -> i32 {
    // SAFETY: null or the application's structure.
    let shape = unsafe { descriptor.as_ref() }.map(Solid::shape);
    // SAFETY: the application's own arguments.
    create(
        shape.and_then(|shape| array_bytes(&shape)),
        out,
        || unsafe { real(out, descriptor) },
    )
}

pub(super) unsafe fn mipmapped(
    real: unsafe extern "C" fn(*mut u64, *const Solid<usize>, u32) -> i32,
    out: *mut u64,
    descriptor: *const Solid<usize>,
    levels: u32,
) -> i32 {
    // SAFETY: null or the application's structure.
    let shape = unsafe { descriptor.as_ref() }.map(Solid::shape);
    let bytes = shape.and_then(|shape| mipmapped_bytes(&shape, levels));
    // SAFETY: the application's own arguments.
    create(bytes, out, || unsafe { real(out, descriptor, levels) })
}

fn create(bytes: Option<u64>, out: *mut u64, call: impl FnOnce() -> i32) -> i32 {
    let request = Request {
        kind: Kind::Array,
        bytes,
    };
    allocate(&request, here, call, || {
        // SAFETY: after a success the driver has written the handle.
        let handle = unsafe { *out };
        (handle, bytes.unwrap_or(0))
    })
}

pub(super) unsafe fn destroy(real: unsafe extern "C" fn(u64) -> i32, array: u64) -> i32 {
    // SAFETY: the application's own argument.
    free(array, || unsafe { real(array) })
}
