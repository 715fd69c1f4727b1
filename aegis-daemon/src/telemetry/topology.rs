//! How far the GPUs are from each other.

use aegis_common::event::{Link, Peer};
use nvml_wrapper::enum_wrappers::device::{P2pCapabilitiesIndex, P2pStatus, TopologyLevel};
use nvml_wrapper::{Device, Nvml};

use super::event::GpuFound;

/// Notes the ways between all GPUs. What NVML does not tell stays unknown: a job then takes its
/// GPUs in the order in which it would take them singly.
pub(super) fn connect(nvml: &Nvml, gpus: &mut [(Device<'_>, GpuFound)]) {
    for first in 0..gpus.len() {
        for second in first + 1..gpus.len() {
            let [Some((one, at)), Some((other, to))] = [gpus.get(first), gpus.get(second)] else {
                continue;
            };
            let (at, to) = (at.index, to.index);
            let Some(link) = link(nvml, one, other) else {
                continue;
            };
            for (position, gpu) in [(first, to), (second, at)] {
                if let Some((_, found)) = gpus.get_mut(position) {
                    found.peers.push(Peer { gpu, link });
                }
            }
        }
    }
}

/// The way from one GPU to another; `None` if NVML does not say.
fn link(nvml: &Nvml, one: &Device<'_>, other: &Device<'_>) -> Option<Link> {
    // Direct links and those through NVSwitch alike.
    let nvlink = one.p2p_status(other, P2pCapabilitiesIndex::NvLink);
    if matches!(nvlink, Ok(P2pStatus::Ok)) {
        return Some(Link::NvLink);
    }
    // The call takes its device by value.
    let other = nvml.device_by_index(other.index().ok()?).ok()?;
    one.topology_common_ancestor(other).ok().map(of_level)
}

const fn of_level(level: TopologyLevel) -> Link {
    match level {
        TopologyLevel::Internal => Link::Board,
        TopologyLevel::Single => Link::Switch,
        TopologyLevel::Multiple => Link::Switches,
        TopologyLevel::HostBridge => Link::HostBridge,
        TopologyLevel::Node => Link::Node,
        TopologyLevel::System => Link::System,
    }
}
