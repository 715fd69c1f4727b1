//! Device and host memory.

use super::{Handle, Out, Place};
use crate::error::{Result, ok};
use crate::runtime;

/// `cudaMallocPitch` promises rows that any element type can be read from.
const ELEMENT_BYTES: u32 = 4;

/// `cudaPointerAttributes`, the part that all versions have.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Attributes {
    kind: i32,
    device: i32,
    device_pointer: u64,
    host_pointer: u64,
}

/// `cudaMemoryType`.
const UNREGISTERED: i32 = 0;
const MANAGED: i32 = 3;

/// Values of `CUpointer_attribute`.
const MEMORY_TYPE: i32 = 2;
const DEVICE_POINTER: i32 = 3;
const HOST_POINTER: i32 = 4;
const IS_MANAGED: i32 = 8;
const DEVICE_ORDINAL: i32 = 9;

fn attributes_of(pointer: Handle) -> Result<Attributes> {
    let driver = runtime::context()?;
    let ask = |attribute, value: &mut u64| {
        let place: *mut u64 = value;
        (driver.pointer_get_attribute)(place.cast(), attribute, pointer) == 0
    };
    let (mut kind, mut managed, mut device, mut on_device, mut on_host) = (0, 0, 0, 0, 0);
    if !ask(MEMORY_TYPE, &mut kind) {
        return Ok(Attributes {
            kind: UNREGISTERED,
            device: -1,
            device_pointer: 0,
            host_pointer: pointer,
        });
    }
    // What does not apply stays 0.
    for (attribute, value) in [
        (IS_MANAGED, &mut managed),
        (DEVICE_ORDINAL, &mut device),
        (DEVICE_POINTER, &mut on_device),
        (HOST_POINTER, &mut on_host),
    ] {
        let _ = ask(attribute, value);
    }
    let number = |value: u64| i32::try_from(value & 0x7fff_ffff).unwrap_or(0);
    Ok(Attributes {
        kind: if managed & 1 != 0 {
            MANAGED
        } else {
            number(kind)
        },
        device: number(device),
        device_pointer: on_device,
        host_pointer: on_host,
    })
}

api! {
    fn cudaMalloc(pointer: Place, bytes: usize) |driver| {
        if bytes == 0 {
            // The runtime answers NULL where the driver refuses.
            return Out::<u64>(pointer.cast()).set(0);
        }
        ok((driver.mem_alloc)(pointer, bytes))
    }

    fn cudaMallocManaged(pointer: Place, bytes: usize, flags: u32) |driver| {
        ok((driver.mem_alloc_managed)(pointer, bytes, flags))
    }

    fn cudaMallocPitch(pointer: Place, pitch: Place, width: usize, height: usize) |driver| {
        ok((driver.mem_alloc_pitch)(pointer, pitch, width, height, ELEMENT_BYTES))
    }

    fn cudaFree(pointer: Handle) |driver| {
        if pointer == 0 {
            return Ok(());
        }
        ok((driver.mem_free)(pointer))
    }

    fn cudaMemGetInfo(free: Place, total: Place) |driver| {
        ok((driver.mem_get_info)(free, total))
    }

    fn cudaMallocHost(pointer: Place, bytes: usize) |driver| {
        ok((driver.mem_host_alloc)(pointer, bytes, 0))
    }

    fn cudaHostAlloc(pointer: Place, bytes: usize, flags: u32) |driver| {
        ok((driver.mem_host_alloc)(pointer, bytes, flags))
    }

    fn cudaFreeHost(pointer: Handle) |driver| {
        if pointer == 0 {
            return Ok(());
        }
        ok((driver.mem_free_host)(pointer))
    }

    fn cudaHostRegister(pointer: Handle, bytes: usize, flags: u32) |driver| {
        ok((driver.mem_host_register)(pointer, bytes, flags))
    }

    fn cudaHostUnregister(pointer: Handle) |driver| {
        ok((driver.mem_host_unregister)(pointer))
    }

    fn cudaHostGetDevicePointer(pointer: Place, host: Handle, flags: u32) |driver| {
        ok((driver.mem_host_get_device_pointer)(pointer, host, flags))
    }

    fn cudaHostGetFlags(flags: Place, host: Handle) |driver| {
        ok((driver.mem_host_get_flags)(flags, host))
    }

    bare fn cudaPointerGetAttributes(attributes: Out<Attributes>, pointer: Handle) {
        attributes.set(attributes_of(pointer)?)
    }

}
