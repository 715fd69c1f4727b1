//! `cuMemCreate` and what keeps its memory alive.

use aegis_common::abi::ledger::Kind;

use super::driver::SUCCESS;
use crate::gpus::{Place, of_device};
use crate::memory::{Request, allocate_into, released};
use crate::session::active;
use crate::sys::thread::Depth;

/// The beginning of `CUmemAllocationProp` and of `CUmemPoolProps`.
#[repr(C)]
pub(super) struct Properties {
    kind: i32,
    handle_types: i32,
    location: Location,
}

/// `CUmemLocation`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Location {
    kind: i32,
    id: i32,
}

/// `CU_MEM_LOCATION_TYPE_DEVICE`; the others are host memory.
const ON_DEVICE: i32 = 1;

impl Properties {
    /// The device, if it is not host memory.
    pub(super) fn device(&self) -> Option<i32> {
        self.location.device()
    }
}

impl Location {
    /// The device, if it is not host memory.
    pub(super) fn device(&self) -> Option<i32> {
        (self.kind == ON_DEVICE).then_some(self.id)
    }
}

pub(super) unsafe fn create(
    real: unsafe extern "C" fn(*mut u64, usize, *const Properties, u64) -> i32,
    out: *mut u64,
    bytes: usize,
    properties: *const Properties,
    flags: u64,
) -> i32 {
    // SAFETY: the application's own arguments.
    let call = || unsafe { real(out, bytes, properties, flags) };
    // SAFETY: null or the application's structure.
    let Some(device) = unsafe { properties.as_ref() }.and_then(Properties::device) else {
        return call();
    };
    let request = Request {
        kind: Kind::Vmm,
        bytes: Some(bytes as u64),
    };
    allocate_into(
        &request,
        // The device is in the properties; the memory belongs to no context.
        |state| {
            Some(Place {
                gpu: of_device(state, device)?,
                context: 0,
            })
        },
        call,
        // SAFETY: after a success the driver has written the handle.
        || unsafe { (*out, bytes as u64) },
        |state, handle, block| state.physical.lock().create(handle, block),
    )
}

pub(super) unsafe fn release(real: unsafe extern "C" fn(u64) -> i32, handle: u64) -> i32 {
    // SAFETY: the application's own argument.
    let call = || unsafe { real(handle) };
    let Some(_depth) = Depth::enter() else {
        return call();
    };
    let Some(state) = active() else { return call() };
    let token = state.physical.lock().begin_release(handle);
    let status = call();
    if let Some(token) = token {
        let mut physical = state.physical.lock();
        if status != SUCCESS {
            physical.undo_release(token);
        } else if let Some(block) = physical.finish_release(token) {
            released(state, &block);
        }
    }
    status
}

pub(super) unsafe fn retain(
    real: unsafe extern "C" fn(*mut u64, u64) -> i32,
    out: *mut u64,
    address: u64,
) -> i32 {
    // SAFETY: the application's own arguments.
    let status = unsafe { real(out, address) };
    if status == SUCCESS
        && let Some(state) = active()
    {
        // SAFETY: after a success the driver has written the handle.
        let handle = unsafe { *out };
        state.physical.lock().retain(handle, address);
    }
    status
}

pub(super) unsafe fn map(
    real: unsafe extern "C" fn(u64, usize, usize, u64, u64) -> i32,
    address: u64,
    bytes: usize,
    offset: usize,
    handle: u64,
    flags: u64,
) -> i32 {
    // SAFETY: the application's own arguments.
    let status = unsafe { real(address, bytes, offset, handle, flags) };
    if status == SUCCESS
        && let Some(state) = active()
    {
        state.physical.lock().map(address, bytes as u64, handle);
    }
    status
}

pub(super) unsafe fn unmap(
    real: unsafe extern "C" fn(u64, usize) -> i32,
    address: u64,
    bytes: usize,
) -> i32 {
    // SAFETY: the application's own arguments.
    let status = unsafe { real(address, bytes) };
    if status == SUCCESS
        && let Some(state) = active()
    {
        let mut physical = state.physical.lock();
        physical.unmap(address, bytes as u64, |block| released(state, block));
    }
    status
}
