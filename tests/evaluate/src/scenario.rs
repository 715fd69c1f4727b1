//! The machines and traces that policies are compared on.

use aegis_common::policy::Tier;
use aegis_daemon::replay::MachineConfig;
use aegis_daemon::replay::generate::{Shape, generate};
use aegis_daemon::replay::trace::Trace;

/// GPU memory of the published testbed, GiB.
const GPU_GIB: u64 = 40;

/// A machine with its truth, and how many jobs its traces have.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) machine: MachineConfig,
    /// Jobs of a trace.
    pub(crate) jobs: usize,
}

impl Scenario {
    /// The published testbed (3 GPUs, 60 jobs), or the same load on another number of GPUs.
    pub(crate) fn machine(gpus: u32) -> Self {
        Self {
            machine: MachineConfig::new(gpus, GPU_GIB),
            jobs: 20 * gpus as usize,
        }
    }

    /// How many GPUs there are.
    pub(crate) fn gpus(&self) -> u32 {
        self.machine.gpus
    }

    /// The same with what GPUs before Hopper tell without a profiler: NVML's utilisation.
    pub(crate) fn nvml_only(mut self) -> Self {
        self.machine.tier = Tier::Utilisation;
        self
    }

    /// What telemetry there is.
    pub(crate) fn tier(&self) -> &'static str {
        match self.machine.tier {
            Tier::Gpm | Tier::Dcgm => "gpm",
            Tier::Utilisation => "nvml",
            Tier::None => "none",
        }
    }

    /// The trace of a shape and seed.
    pub(crate) fn trace(&self, shape: Shape, seed: u64) -> Trace {
        generate(shape, self.jobs, self.gpus(), 1.0, seed)
    }
}
