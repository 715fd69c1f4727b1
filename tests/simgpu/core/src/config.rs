//! What a simulated machine consists of.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::layout::MAX_GPUS;

/// One mebibyte.
pub const MIB: u64 = 1 << 20;

/// A simulated machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MachineConfig {
    /// The GPUs, in the order of their index.
    pub gpus: Vec<GpuConfig>,
    /// Kernels and copies cost nothing and the time line is not kept: for measuring call overhead.
    pub zero_duration: bool,
    /// Factor on all durations (0.1 = ten times faster), above 0.
    pub time_scale: f64,
    /// What is written to `journal/`.
    pub journal: JournalMode,
    /// What `cuDriverGetVersion` says (12080 = CUDA 12.8).
    pub cuda_version: i32,
}

/// What is written to `journal/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalMode {
    /// Nothing.
    Off,
    /// Each driver call except launches, copies and memsets, which are only counted.
    Calls,
}

/// One simulated GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GpuConfig {
    /// Product name.
    pub name: String,
    /// Total memory in bytes.
    pub memory_bytes: u64,
    /// Memory the driver keeps for itself, bytes: in NVML's v1 `used`, v2 `reserved`.
    pub reserved_bytes: u64,
    /// What one process's context takes, bytes: charged in NVML's per-process figures and in free
    /// memory, shown by no other call.
    pub context_bytes: u64,
    /// `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`; empty = derived from the index.
    pub uuid: String,
    /// Whether NVML GPM answers (Hopper and newer).
    pub supports_gpm: bool,
    /// Whether NVML's process utilisation answers.
    pub supports_process_utilization: bool,
    /// Compute capability.
    pub compute_capability: (u32, u32),
    /// GPUs with the same number are connected by NVLink.
    pub nvlink: Option<u32>,
    /// GPUs with the same number are below one PCIe switch; others meet at the host bridge.
    pub switch: Option<u32>,
}

impl Default for MachineConfig {
    fn default() -> Self {
        Self {
            gpus: vec![GpuConfig::default()],
            zero_duration: false,
            time_scale: 1.0,
            journal: JournalMode::Calls,
            cuda_version: 12080,
        }
    }
}

impl Default for GpuConfig {
    fn default() -> Self {
        Self {
            name: "Simulated A100".to_owned(),
            memory_bytes: 40 * 1024 * MIB,
            reserved_bytes: 512 * MIB,
            context_bytes: 300 * MIB,
            uuid: String::new(),
            supports_gpm: true,
            supports_process_utilization: true,
            compute_capability: (8, 0),
            nvlink: None,
            switch: None,
        }
    }
}

impl MachineConfig {
    /// `count` GPUs of `memory_bytes` each, the rest as in the defaults.
    pub fn uniform(count: usize, memory_bytes: u64) -> Self {
        let gpu = GpuConfig {
            memory_bytes,
            ..GpuConfig::default()
        };
        Self {
            gpus: vec![gpu; count],
            ..Self::default()
        }
    }

    /// Checks the values and fills in the UUIDs.
    pub(crate) fn completed(mut self) -> Result<Self> {
        if self.gpus.is_empty() || self.gpus.len() > MAX_GPUS {
            return Err(Error::Config(format!(
                "gpus: give 1 to {MAX_GPUS}, not {}",
                self.gpus.len()
            )));
        }
        if !(self.time_scale.is_finite() && self.time_scale > 0.0) {
            return Err(Error::Config(format!(
                "time_scale: {} is not above 0",
                self.time_scale
            )));
        }
        for (index, gpu) in self.gpus.iter_mut().enumerate() {
            if gpu.reserved_bytes >= gpu.memory_bytes {
                return Err(Error::Config(format!(
                    "gpus[{index}].reserved_bytes: must be below memory_bytes ({})",
                    gpu.memory_bytes
                )));
            }
            if gpu.uuid.is_empty() {
                gpu.uuid = derived_uuid(index as u64);
            }
            if uuid_bytes(&gpu.uuid).is_none() {
                return Err(Error::Config(format!(
                    "gpus[{index}].uuid: {:?} is not a GPU UUID",
                    gpu.uuid
                )));
            }
        }
        Ok(self)
    }
}

impl GpuConfig {
    /// Memory that processes can have, bytes.
    pub fn usable_bytes(&self) -> u64 {
        self.memory_bytes.saturating_sub(self.reserved_bytes)
    }

    /// The UUID as 16 bytes (zeros if it is malformed, which `Machine::create` refuses).
    pub fn uuid_bytes(&self) -> [u8; 16] {
        uuid_bytes(&self.uuid).unwrap_or_default()
    }
}

fn derived_uuid(seed: u64) -> String {
    // splitmix64: any fixed mixing would do, the same index must give the same UUID in each run.
    let mix = |n: u64| {
        let mut z = seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let (high, low) = (mix(1), mix(2));
    format!(
        "GPU-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

fn uuid_bytes(uuid: &str) -> Option<[u8; 16]> {
    let digits: String = uuid.strip_prefix("GPU-")?.split('-').collect();
    if digits.len() != 32 {
        return None;
    }
    let value = u128::from_str_radix(&digits, 16).ok()?;
    Some(value.to_be_bytes())
}
