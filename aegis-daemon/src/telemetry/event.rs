//! What telemetry tells the owner.

use aegis_common::abi::GpuUuid;
use aegis_common::event::{Gpu, Peer};
use aegis_common::id::GpuIndex;
use aegis_common::policy::Tier;

/// News from NVML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TelemetryEvent {
    /// The GPUs that answer. Sent first, after every [`TelemetryEvent::Unavailable`], and whenever
    /// it changes; a GPU no longer listed is lost.
    Gpus(Vec<GpuFound>),
    /// One GPU now.
    Sample(RawSample),
    /// NVML cannot be used. It is tried again with growing pauses of up to a minute.
    Unavailable {
        /// Why.
        error: String,
    },
}

/// A GPU that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFound {
    /// NVML's index when the GPU was first seen. It stays with the GPU's UUID while the daemon or
    /// a job on the GPU lives, even if the driver numbers the others anew after a loss.
    pub index: GpuIndex,
    /// NVML's UUID, `GPU-…`.
    pub uuid: String,
    /// The same as the CUDA driver gives it.
    pub uuid_bytes: GpuUuid,
    /// Product name.
    pub name: String,
    /// Total memory in bytes, what the driver reserves included.
    pub memory: u64,
    /// Bytes the driver reserves for itself.
    pub reserved: u64,
    /// The best tier that works here.
    pub tier: Tier,
    /// How far the others are, those that NVML told of.
    pub peers: Vec<Peer>,
}

impl From<&GpuFound> for Gpu {
    fn from(found: &GpuFound) -> Self {
        Self {
            index: found.index,
            uuid: found.uuid.clone(),
            name: found.name.clone(),
            memory: found.memory,
            tier: found.tier,
            peers: found.peers.clone(),
        }
    }
}

/// One GPU's figures, before its processes are matched with jobs. Sent with every new measurement
/// of activity (`sample_interval`), and in between when asked for, or when the memory in use or the
/// process list changed; then the last measurement of activity is repeated while it is fresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawSample {
    /// The GPU.
    pub gpu: GpuIndex,
    /// See [`aegis_common::event::GpuSample::sm_active`].
    pub sm_active: Option<u16>,
    /// See [`aegis_common::event::GpuSample::sm_occupancy`].
    pub sm_occupancy: Option<u16>,
    /// See [`aegis_common::event::GpuSample::dram_active`].
    pub dram_active: Option<u16>,
    /// Bytes in use on the device, what the driver reserves included.
    pub used: Option<u64>,
    /// Pids on the GPU, each once and ascending, with their bytes. `None` if the list, or the
    /// bytes of anyone in it, cannot be had.
    pub processes: Option<Vec<(u32, u64)>>,
}
