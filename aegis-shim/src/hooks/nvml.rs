//! NVML's view of memory, for a job with a declared `--gpu-mem`.
//!
//! Frameworks compare it with `cuMemGetInfo`, so both must tell the same story (contract C10).

use core::ffi::{CStr, c_char};

use shim_core::uuid;

use super::info::{View, view_of, virtualised};
use super::real;
use crate::session::active;

/// `nvmlMemory_t`, bytes.
#[repr(C)]
pub(super) struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_v2_t`, bytes.
#[repr(C)]
pub(super) struct MemoryV2 {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// `NVML_SUCCESS`.
const SUCCESS: i32 = 0;

pub(super) unsafe fn memory_info(
    real: unsafe extern "C" fn(u64, *mut Memory) -> i32,
    device: u64,
    memory: *mut Memory,
) -> i32 {
    // SAFETY: the application's own arguments.
    let status = unsafe { real(device, memory) };
    if status == SUCCESS
        && let Some(view) = view(device)
        // SAFETY: null, or written by NVML just now.
        && let Some(memory) = unsafe { memory.as_mut() }
    {
        memory.total = memory.total.min(view.total);
        memory.free = memory.free.min(view.free);
        memory.used = memory.total.saturating_sub(memory.free);
    }
    status
}

pub(super) unsafe fn memory_info_v2(
    real: unsafe extern "C" fn(u64, *mut MemoryV2) -> i32,
    device: u64,
    memory: *mut MemoryV2,
) -> i32 {
    // SAFETY: the application's own arguments.
    let status = unsafe { real(device, memory) };
    if status == SUCCESS
        && let Some(view) = view(device)
        // SAFETY: null, or written by NVML just now.
        && let Some(memory) = unsafe { memory.as_mut() }
    {
        memory.total = memory.total.min(view.total);
        memory.free = memory.free.min(view.free);
        // All of the declared total is the job's. The driver's reserve is a share of the whole GPU:
        // kept here, it would be larger than what the job uses and hide it.
        memory.reserved = 0;
        memory.used = memory.total.saturating_sub(memory.free);
    }
    status
}

fn view(device: u64) -> Option<View> {
    type Real = unsafe extern "C" fn(u64, *mut c_char, u32) -> i32;
    /// `NVML_DEVICE_UUID_V2_BUFFER_SIZE`.
    const TEXT_BYTES: usize = 96;
    let state = active().filter(|state| virtualised(state))?;
    let address = real::nvml()?.function(c"nvmlDeviceGetUUID")?;
    // SAFETY: NVML's function of this name has this signature.
    let real = unsafe { core::mem::transmute::<usize, Real>(address) };
    let mut text = [0u8; TEXT_BYTES];
    // SAFETY: a buffer of that length; the device is one that NVML just accepted.
    let status = unsafe { real(device, text.as_mut_ptr().cast(), TEXT_BYTES as u32) };
    let text = CStr::from_bytes_until_nul(&text).ok()?;
    let uuid = uuid::parse(text.to_bytes()).filter(|_| status == SUCCESS)?;
    view_of(state, &uuid)
}
