//! How devices hang together: all below one host bridge, in groups below switches and with NVLink.

use simgpu_core::GpuConfig;

use crate::code::Code;
use crate::ffi::pointers::Ptr;
use crate::library::{device, handle};

/// `NVML_TOPOLOGY_INTERNAL`, `…_SINGLE` and `…_HOSTBRIDGE`.
const INTERNAL: u32 = 0;
const SINGLE: u32 = 10;
const HOST_BRIDGE: u32 = 30;
/// `NVML_P2P_CAPS_INDEX_NVLINK`, `NVML_P2P_STATUS_OK` and `…_NOT_SUPPORTED`.
const P2P_NVLINK: u32 = 2;
const P2P_OK: u32 = 0;
const P2P_NOT_SUPPORTED: u32 = 5;

/// Whether two GPUs are in the same group, where they are in one at all.
fn together(one: Option<u32>, other: Option<u32>) -> bool {
    one.is_some() && one == other
}

fn level(gpus: &[GpuConfig], one: usize, other: usize) -> u32 {
    let switch = |gpu: usize| gpus.get(gpu).and_then(|gpu| gpu.switch);
    if one == other {
        INTERNAL
    } else if together(switch(one), switch(other)) {
        SINGLE
    } else {
        HOST_BRIDGE
    }
}

export! {
    fn nvmlDeviceGetTopologyCommonAncestor(of: u64, other: u64, found: Ptr<u32>) {
        let (device, other) = (device(of)?, device(other)?);
        found.set(level(&device.machine.config().gpus, device.gpu, other.gpu))
    }

    fn nvmlDeviceGetTopologyNearestGpus(of: u64, at: u32, count: Ptr<u32>, handles: Ptr<u64>) {
        let device = device(of)?;
        let room = count.get()? as usize;
        let gpus = &device.machine.config().gpus;
        let near = |other: &usize| *other != device.gpu && level(gpus, device.gpu, *other) == at;
        let others: Vec<usize> = (0..gpus.len()).filter(near).collect();
        count.set(others.len() as u32)?;
        for (index, gpu) in others.into_iter().take(room).enumerate() {
            handles.at(index).set(handle(gpu))?;
        }
        Ok(())
    }

    fn nvmlDeviceOnSameBoard(of: u64, other: u64, same: Ptr<i32>) {
        same.set(i32::from(device(of)?.gpu == device(other)?.gpu))
    }

    fn nvmlDeviceGetP2PStatus(of: u64, other: u64, index: u32, status: Ptr<u32>) {
        let (device, other) = (device(of)?, device(other)?);
        let nvlink = |gpu: usize| device.machine.config().gpus.get(gpu).and_then(|gpu| gpu.nvlink);
        let missing = index == P2P_NVLINK && !together(nvlink(device.gpu), nvlink(other.gpu));
        status.set(if missing { P2P_NOT_SUPPORTED } else { P2P_OK })
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
nvmlDeviceGetNvLinkRemotePciInfo_v2 nvmlDeviceGetNvLinkRemoteDeviceType nvmlDeviceGetGpuFabricInfoV nvmlDeviceGetMemoryAffinity nvmlDeviceGetNumaNodeId }
