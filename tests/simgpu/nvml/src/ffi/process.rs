//! Process lists.

use simgpu_core::fault::FaultKind;

use crate::code::{Code, Result};
use crate::ffi::pointers::Ptr;
use crate::library::device;
use crate::process::{Listed, list};

/// `nvmlProcessInfo_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ProcessV1 {
    pid: u32,
    bytes: u64,
}

/// `nvmlProcessInfo_v2_t`, also that of version 3 of the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ProcessV2 {
    pid: u32,
    bytes: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

/// Without MIG there are no instances.
const NO_INSTANCE: u32 = u32::MAX;

impl From<Listed> for ProcessV1 {
    fn from(p: Listed) -> Self {
        Self {
            pid: p.pid,
            bytes: p.bytes,
        }
    }
}

impl From<Listed> for ProcessV2 {
    fn from(p: Listed) -> Self {
        Self {
            pid: p.pid,
            bytes: p.bytes,
            gpu_instance: NO_INSTANCE,
            compute_instance: NO_INSTANCE,
        }
    }
}

fn write<T: From<Listed>>(of: u64, count: Ptr<u32>, infos: Ptr<T>) -> Result<()> {
    let device = device(of)?;
    device.fault(FaultKind::NvmlProcessList)?;
    let room = count.get()? as usize;
    let processes = list(&device);
    count.set(processes.len() as u32)?;
    if processes.len() > room {
        return Err(Code::INSUFFICIENT_SIZE);
    }
    for (index, process) in processes.into_iter().enumerate() {
        infos.at(index).set(process.into())?;
    }
    Ok(())
}

fn write_none(of: u64, count: Ptr<u32>) -> Result<()> {
    let device = device(of)?;
    device.fault(FaultKind::NvmlProcessList)?;
    count.set(0)
}

export! {
    fn nvmlDeviceGetComputeRunningProcesses(of: u64, count: Ptr<u32>, infos: Ptr<ProcessV1>) {
        write(of, count, infos)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetComputeRunningProcesses_v3(of: u64, count: Ptr<u32>, infos: Ptr<ProcessV2>) {
        write(of, count, infos)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses(of: u64, count: Ptr<u32>, _infos: Ptr<ProcessV1>) {
        write_none(of, count)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses_v3(of: u64, count: Ptr<u32>, _infos: Ptr<ProcessV2>) {
        write_none(of, count)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses(of: u64, count: Ptr<u32>, _infos: Ptr<ProcessV1>) {
        write_none(of, count)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlDeviceGetMPSComputeRunningProcesses_v3(of: u64, count: Ptr<u32>, _infos: Ptr<ProcessV2>) {
        write_none(of, count)
    }

    fn nvmlDeviceGetAccountingMode(of: u64, mode: Ptr<u32>) {
        device(of)?;
        mode.set(0)
    }

    fn nvmlDeviceGetAccountingBufferSize(of: u64, size: Ptr<u32>) {
        device(of)?;
        size.set(4000)
    }

    fn nvmlDeviceGetAccountingPids(of: u64, count: Ptr<u32>, _pids: Ptr<u32>) {
        device(of)?;
        count.set(0)
    }

    fn nvmlDeviceGetAccountingStats(of: u64, _pid: u32, _stats: Ptr<u64>) {
        device(of)?;
        Err(Code::NOT_FOUND)
    }
}

unsupported! { nvmlDeviceSetAccountingMode nvmlDeviceClearAccountingPids nvmlDeviceGetRunningProcessDetailList }
