//! Finding devices, and what they are.

use std::ffi::c_char;

use crate::code::Code;
use crate::ffi::pointers::{Ptr, fixed};
use crate::library::{Device, device, handle, machine};

/// `nvmlPciInfo_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct PciInfo {
    bus_id_legacy: [u8; 16],
    domain: u32,
    bus: u32,
    device: u32,
    device_id: u32,
    subsystem_id: u32,
    bus_id: [u8; 32],
}

/// Device and vendor id told: those of no product.
const DEVICE_ID: u32 = 0xffff_10de;

fn pci(device: &Device) -> PciInfo {
    let bus = device.bus();
    PciInfo {
        bus_id_legacy: fixed(&format!("0000:{bus:02X}:00.0")),
        domain: 0,
        bus,
        device: 0,
        device_id: DEVICE_ID,
        subsystem_id: 0,
        bus_id: fixed(&format!("00000000:{bus:02X}:00.0")),
    }
}

export! {
    fn nvmlDeviceGetCount, nvmlDeviceGetCount_v2(count: Ptr<u32>) {
        count.set(machine()?.config().gpus.len() as u32)
    }

    fn nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2(index: u32, result: Ptr<u64>) {
        let gpus = machine()?.config().gpus.len();
        let gpu = index as usize;
        if gpu >= gpus {
            return Err(Code::INVALID_ARGUMENT);
        }
        result.set(handle(gpu))
    }

    fn nvmlDeviceGetHandleByUUID(uuid: Ptr<c_char>, result: Ptr<u64>) {
        let uuid = uuid.text()?;
        let found = machine()?.config().gpus.iter().position(|g| g.uuid == uuid);
        result.set(handle(found.ok_or(Code::NOT_FOUND)?))
    }

    fn nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2(id: Ptr<c_char>, result: Ptr<u64>) {
        let id = id.text()?;
        let bus = id.rsplit(':').nth(1).and_then(|b| usize::from_str_radix(b, 16).ok());
        let gpus = machine()?.config().gpus.len();
        let gpu = bus.and_then(|b| b.checked_sub(1)).filter(|g| *g < gpus);
        result.set(handle(gpu.ok_or(Code::NOT_FOUND)?))
    }

    fn nvmlDeviceGetHandleBySerial(_serial: Ptr<c_char>, _result: Ptr<u64>) {
        machine()?;
        Err(Code::NOT_FOUND)
    }

    fn nvmlDeviceGetIndex(of: u64, index: Ptr<u32>) {
        index.set(device(of)?.gpu as u32)
    }

    fn nvmlDeviceGetMinorNumber(of: u64, minor: Ptr<u32>) {
        minor.set(device(of)?.gpu as u32)
    }

    fn nvmlDeviceGetName(of: u64, name: Ptr<c_char>, length: u32) {
        name.set_text(&device(of)?.config.name, length)
    }

    fn nvmlDeviceGetUUID(of: u64, uuid: Ptr<c_char>, length: u32) {
        uuid.set_text(&device(of)?.config.uuid, length)
    }

    fn nvmlDeviceGetPciInfo, nvmlDeviceGetPciInfo_v2(of: u64, info: Ptr<PciInfo>) {
        info.set(pci(&device(of)?))
    }

    fn nvmlDeviceGetPciInfo_v3(of: u64, info: Ptr<PciInfo>) {
        info.set(pci(&device(of)?))
    }

    fn nvmlDeviceGetCudaComputeCapability(of: u64, major: Ptr<i32>, minor: Ptr<i32>) {
        let capability = device(of)?.config.compute_capability;
        major.set(capability.0 as i32)?;
        minor.set(capability.1 as i32)
    }

    fn nvmlDeviceGetArchitecture(of: u64, architecture: Ptr<u32>) {
        // 7 Ampere, 8 Ada, 9 Hopper, 10 Blackwell
        architecture.set(match device(of)?.config.compute_capability {
            (8, 9) => 8,
            (8, _) => 7,
            (9, _) => 9,
            (10.., _) => 10,
            _ => u32::MAX,
        })
    }

    fn nvmlDeviceGetBrand(of: u64, brand: Ptr<u32>) {
        device(of)?;
        // 0 = unknown
        brand.set(0)
    }

    fn nvmlDeviceGetNumGpuCores(of: u64, cores: Ptr<u32>) {
        device(of)?;
        cores.set(6912)
    }

    fn nvmlDeviceGetBoardId(of: u64, board: Ptr<u32>) {
        board.set(device(of)?.bus() << 8)
    }

    fn nvmlDeviceGetMultiGpuBoard(of: u64, multiple: Ptr<u32>) {
        device(of)?;
        multiple.set(0)
    }
}

unsupported! { nvmlDeviceGetSerial nvmlDeviceGetBoardPartNumber nvmlDeviceGetVbiosVersion nvmlDeviceGetInforomVersion
nvmlDeviceGetInforomImageVersion nvmlDeviceGetGspFirmwareVersion nvmlDeviceGetAttributes_v2 nvmlDeviceGetAttributes }
