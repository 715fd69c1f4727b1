//! How devices hang together: all below one host bridge, without NVLink.

use crate::code::Code;
use crate::ffi::pointers::Ptr;
use crate::library::{device, handle};

/// `NVML_TOPOLOGY_HOSTBRIDGE` and `NVML_TOPOLOGY_INTERNAL`.
const HOST_BRIDGE: u32 = 30;
const INTERNAL: u32 = 0;

export! {
    fn nvmlDeviceGetTopologyCommonAncestor(of: u64, other: u64, level: Ptr<u32>) {
        let same = device(of)?.gpu == device(other)?.gpu;
        level.set(if same { INTERNAL } else { HOST_BRIDGE })
    }

    fn nvmlDeviceGetTopologyNearestGpus(of: u64, level: u32, count: Ptr<u32>, handles: Ptr<u64>) {
        let device = device(of)?;
        let room = count.get()? as usize;
        let gpus = device.machine.config().gpus.len();
        let others: Vec<usize> = (0..gpus).filter(|g| *g != device.gpu && level == HOST_BRIDGE).collect();
        count.set(others.len() as u32)?;
        for (index, gpu) in others.into_iter().take(room).enumerate() {
            handles.at(index).set(handle(gpu))?;
        }
        Ok(())
    }

    fn nvmlDeviceOnSameBoard(of: u64, other: u64, same: Ptr<i32>) {
        same.set(i32::from(device(of)?.gpu == device(other)?.gpu))
    }

    fn nvmlDeviceGetP2PStatus(of: u64, other: u64, _index: u32, status: Ptr<u32>) {
        device(of)?;
        device(other)?;
        status.set(0)
    }

    fn nvmlDeviceGetNvLinkState(of: u64, _link: u32, _active: Ptr<u32>) {
        device(of)?;
        Err(Code::NOT_SUPPORTED)
    }

    fn nvmlDeviceGetCurrPcieLinkGeneration, nvmlDeviceGetMaxPcieLinkGeneration(of: u64, generation: Ptr<u32>) {
        device(of)?;
        generation.set(4)
    }

    fn nvmlDeviceGetCurrPcieLinkWidth, nvmlDeviceGetMaxPcieLinkWidth(of: u64, width: Ptr<u32>) {
        device(of)?;
        width.set(16)
    }

    fn nvmlDeviceGetCpuAffinity(of: u64, words: u32, mask: Ptr<u64>) {
        device(of)?;
        (0..words as usize).try_for_each(|index| mask.at(index).set(u64::MAX))
    }
}

unsupported! { nvmlDeviceGetNvLinkVersion nvmlDeviceGetNvLinkCapability nvmlDeviceGetNvLinkRemotePciInfo
nvmlDeviceGetNvLinkRemotePciInfo_v2 nvmlDeviceGetMemoryAffinity nvmlDeviceGetNumaNodeId }
