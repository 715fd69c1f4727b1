//! Memory of a device.

use simgpu_core::fault::FaultKind;

use crate::code::Code;
use crate::ffi::pointers::Ptr;
use crate::library::device;

/// `nvmlMemory_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct MemoryV2 {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// Size of the struct, and version 2.
const VERSION_2: u32 = size_of::<MemoryV2>() as u32 | (2 << 24);

export! {
    fn nvmlDeviceGetMemoryInfo(of: u64, memory: Ptr<Memory>) {
        let device = device(of)?;
        device.fault(FaultKind::NvmlMemory)?;
        let usage = device.usage()?;
        // Version 1 counts what the driver keeps as used.
        memory.set(Memory { total: usage.total, free: usage.free, used: usage.total - usage.free })
    }

    fn nvmlDeviceGetMemoryInfo_v2(of: u64, memory: Ptr<MemoryV2>) {
        let device = device(of)?;
        device.fault(FaultKind::NvmlMemory)?;
        let version = memory.get()?.version;
        if version != VERSION_2 {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let usage = device.usage()?;
        memory.set(MemoryV2 {
            version,
            total: usage.total,
            reserved: usage.reserved,
            free: usage.free,
            used: usage.used,
        })
    }

    fn nvmlDeviceGetBAR1MemoryInfo(of: u64, memory: Ptr<[u64; 3]>) {
        let usage = device(of)?.usage()?;
        // Total, free, used.
        memory.set([usage.total, usage.total, 0])
    }
}
