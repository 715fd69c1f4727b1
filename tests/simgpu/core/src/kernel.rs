//! What a kernel costs on the simulated driver, and how a workload says so.
//!
//! Kernels are not executed, they take time. Three ways, tried in this order on the name of the
//! launched function (the `.entry` name in the PTX text the module was loaded from):
//!
//! 1. **`sim_timed`** (the way for workloads): the cost is given by each launch's arguments, in
//!    this order, as `kernelParams` (an array of four pointers to the values) or packed in the
//!    `extra` buffer (`CU_LAUNCH_PARAM_BUFFER_POINTER`, 20 bytes at offsets 0, 8, 12, 16):
//!
//!    | # | type  | meaning |
//!    |---|-------|---------|
//!    | 0 | `u64` | duration in ns when the process has the GPU to itself |
//!    | 1 | `u32` | SM active, permille (1000 = each SM has a resident warp all the time): DCGM's SMACT |
//!    | 2 | `u32` | SM occupancy, permille of the resident-warp limit: DCGM's SMOCC |
//!    | 3 | `u32` | DRAM active, permille of peak bandwidth: DCGM's DRAMA |
//!
//!    Load [`PTX`] (or any PTX text that has an `.entry sim_timed`) with `cuModuleLoadData`, take
//!    the function with `cuModuleGetFunction(.., "sim_timed")`, launch with any grid and block.
//! 2. **`sim_kernel__<ns>__<sm permille>__<dram permille>`**: the cost is in the name, occupancy is
//!    half of SM active. For programs that can choose kernel names but not arguments. Values above
//!    1000 permille count as 1000.
//! 3. **Any other kernel** (a compiler's PTX): [`Cost::from_geometry`], from grid and block size.
//!
//! Semantics a workload can rely on: launches are asynchronous; kernels of one process on one GPU
//! run one after the other in launch order, whatever their streams (a kernel is assumed to fill the
//! machine); `cuStreamSynchronize`, `cuEventSynchronize`, `cuCtxSynchronize` and blocking copies
//! sleep until the work before them is done; `cuEventElapsedTime` tells simulated GPU time. Kernels
//! of several processes share the GPU as `crate::share` says. Durations are multiplied by
//! `MachineConfig::time_scale`; with `MachineConfig::zero_duration` they are ignored. Arguments of
//! other types than above are never looked at.

/// PTX text with the entry `sim_timed`, fit for `cuModuleLoadData` (NUL-terminated).
pub const PTX: &str = "\
.version 7.0
.target sm_52
.address_size 64

.visible .entry sim_timed(
    .param .u64 duration_ns,
    .param .u32 sm_active_permille,
    .param .u32 sm_occupancy_permille,
    .param .u32 dram_active_permille
)
{
    ret;
}
\0";

/// Name of the entry whose arguments give its cost.
pub const TIMED: &str = "sim_timed";

/// Prefix of names that carry their cost.
pub const NAMED_PREFIX: &str = "sim_kernel__";

/// Bytes of the packed argument buffer of [`TIMED`].
pub const TIMED_BUFFER_BYTES: usize = 20;

/// What one kernel asks of a GPU that it has to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Duration alone on the GPU, ns.
    pub duration_ns: u64,
    /// SM active, permille.
    pub sm_active: u32,
    /// SM occupancy, permille.
    pub sm_occupancy: u32,
    /// DRAM active, permille.
    pub dram_active: u32,
}

/// How the cost of a function's launches is found; decided once, when the function is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostRule {
    /// From the launch's arguments ([`TIMED`]).
    Arguments,
    /// The same for each launch, from the name.
    Fixed(Cost),
    /// From grid and block size.
    Geometry,
}

impl CostRule {
    /// The rule for a function called `name`.
    ///
    /// ```
    /// use simgpu_core::kernel::{Cost, CostRule};
    /// assert_eq!(CostRule::of_name("sim_timed"), CostRule::Arguments);
    /// let cost = Cost { duration_ns: 5000, sm_active: 800, sm_occupancy: 400, dram_active: 300 };
    /// assert_eq!(CostRule::of_name("sim_kernel__5000__800__300"), CostRule::Fixed(cost));
    /// assert_eq!(CostRule::of_name("r_32_16"), CostRule::Geometry);
    /// ```
    pub fn of_name(name: &str) -> Self {
        if name == TIMED {
            return Self::Arguments;
        }
        name.strip_prefix(NAMED_PREFIX)
            .and_then(parse_named)
            .map_or(Self::Geometry, Self::Fixed)
    }
}

fn parse_named(rest: &str) -> Option<Cost> {
    let mut parts = rest.split("__");
    let duration_ns = parts.next()?.parse().ok()?;
    let sm_active: u32 = parts.next()?.parse().ok()?;
    let dram_active: u32 = parts.next()?.parse().ok()?;
    if parts.next().is_some() {
        return None;
    }
    Some(Cost::new(
        duration_ns,
        sm_active,
        sm_active.min(1000) / 2,
        dram_active,
    ))
}

impl Cost {
    /// A cost with each share capped at 1000 permille.
    pub fn new(duration_ns: u64, sm_active: u32, sm_occupancy: u32, dram_active: u32) -> Self {
        Self {
            duration_ns,
            sm_active: sm_active.min(1000),
            sm_occupancy: sm_occupancy.min(1000),
            dram_active: dram_active.min(1000),
        }
    }

    /// A plausible small cost for a kernel of `blocks` blocks of `threads` threads: 2 µs plus 1 ns
    /// for each 64 threads (assumed figures, of the order of an element-wise kernel on an A100),
    /// 108 SMs of 2048 threads.
    pub fn from_geometry(blocks: u64, threads: u64) -> Self {
        let total = blocks.saturating_mul(threads);
        let permille = |part: u64, whole: u64| -> u32 {
            u32::try_from(part.saturating_mul(1000) / whole).map_or(1000, |p| p.min(1000))
        };
        Self {
            duration_ns: 2_000 + total / 64,
            sm_active: permille(blocks, 108),
            sm_occupancy: permille(total, 108 * 2048),
            dram_active: permille(total, 108 * 2048 * 2),
        }
    }
}
