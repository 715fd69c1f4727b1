//! Kernels that take time: what each asks of the GPU, and the mixes training steps are made of.

/// Name of the entry in [`PTX`]. The simulated driver reads its arguments as the launch's cost.
pub const ENTRY: &str = "sim_timed";

/// A kernel that occupies the GPU for `duration_ns`, NUL-terminated for `cuModuleLoadData`.
///
/// The simulated driver does not execute it and takes the cost from the arguments. A real GPU
/// executes it: each thread watches the clock, so the same workload runs there too, with SM activity
/// set by the grid (see [`KernelDemand::grid`]) and without DRAM traffic.
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
    .reg .pred %p<2>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [duration_ns];
    mov.u64 %rd2, %globaltimer;
WATCH:
    mov.u64 %rd3, %globaltimer;
    sub.s64 %rd4, %rd3, %rd2;
    setp.lt.u64 %p1, %rd4, %rd1;
    @%p1 bra WATCH;
    ret;
}
\0";

/// What one launch asks of the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KernelDemand {
    /// Duration when the process has the GPU to itself, ns.
    pub duration_ns: u64,
    /// SM active (DCGM's SMACT), permille.
    pub sm_active: u32,
    /// SM occupancy (DCGM's SMOCC), permille.
    pub sm_occupancy: u32,
    /// DRAM active (DCGM's DRAMA), permille.
    pub dram_active: u32,
}

impl KernelDemand {
    /// Blocks and threads per block that give about this SM activity and occupancy on a GPU with
    /// `sms` multiprocessors of 2048 threads: one block on each SM in use.
    #[must_use]
    pub fn grid(&self, sms: u32) -> (u32, u32) {
        let blocks = (sms * self.sm_active).div_ceil(1000).max(1);
        let threads = 2048 * self.sm_occupancy / self.sm_active.max(1);
        (blocks, threads.next_multiple_of(32).clamp(32, 1024))
    }
}

/// A launch of a step relative to the step's average: two GEMM-like kernels that use the SMs more,
/// one memory-bound kernel that uses them less and DRAM more.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Relative duration, percent.
    duration: u64,
    /// Change of SM active and occupancy, percent of the average.
    compute: u32,
    /// Change of DRAM active, percent of the average.
    dram: u32,
}

/// Kernels of a forward and backward pass. Durations average 100, and so do the demands weighted
/// by duration, so that a run's mean SM activity is what was asked for.
const TRAIN: [Shape; 4] = [
    Shape {
        duration: 120,
        compute: 105,
        dram: 90,
    },
    Shape {
        duration: 80,
        compute: 95,
        dram: 110,
    },
    Shape {
        duration: 140,
        compute: 105,
        dram: 85,
    },
    Shape {
        duration: 60,
        compute: 85,
        dram: 145,
    },
];

/// Kernels of an evaluation: forward only, shorter, another order; a different launch fingerprint.
const EVAL: [Shape; 3] = [
    Shape {
        duration: 60,
        compute: 105,
        dram: 80,
    },
    Shape {
        duration: 30,
        compute: 90,
        dram: 140,
    },
    Shape {
        duration: 60,
        compute: 100,
        dram: 100,
    },
];

/// The `index`-th kernel of a training step whose kernels average `average`.
#[must_use]
pub fn train_kernel(average: &KernelDemand, index: u32) -> KernelDemand {
    shaped(average, TRAIN[index as usize % TRAIN.len()])
}

/// The `index`-th kernel of an evaluation step of a model whose training kernels average `average`.
#[must_use]
pub fn eval_kernel(average: &KernelDemand, index: u32) -> KernelDemand {
    shaped(average, EVAL[index as usize % EVAL.len()])
}

/// An optimizer's kernel: short, bound by memory bandwidth.
#[must_use]
pub fn optimizer_kernel(average: &KernelDemand) -> KernelDemand {
    shaped(
        average,
        Shape {
            duration: 40,
            compute: 100,
            dram: 160,
        },
    )
}

fn shaped(average: &KernelDemand, shape: Shape) -> KernelDemand {
    let percent = |value: u32, by: u32| (value * by / 100).min(1000);
    KernelDemand {
        duration_ns: average.duration_ns.saturating_mul(shape.duration) / 100,
        sm_active: percent(average.sm_active, shape.compute),
        sm_occupancy: percent(average.sm_occupancy, shape.compute),
        dram_active: percent(average.dram_active, shape.dram),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AVERAGE: KernelDemand = KernelDemand {
        duration_ns: 1_000_000,
        sm_active: 600,
        sm_occupancy: 300,
        dram_active: 400,
    };

    #[test]
    fn a_training_step_averages_what_was_asked_for() {
        let kernels: Vec<_> = (0..4).map(|i| train_kernel(&AVERAGE, i)).collect();
        let time: u64 = kernels.iter().map(|k| k.duration_ns).sum();
        assert_eq!(time, 4 * AVERAGE.duration_ns);
        let busy: u64 = kernels
            .iter()
            .map(|k| k.duration_ns * u64::from(k.sm_active))
            .sum();
        let mean = busy / time;
        assert!((590..=610).contains(&mean), "{mean}");
    }

    #[test]
    fn evaluation_launches_other_kernels() {
        let train: Vec<_> = (0..12).map(|i| train_kernel(&AVERAGE, i)).collect();
        assert!((0..12).all(|i| !train.contains(&eval_kernel(&AVERAGE, i))));
    }

    #[test]
    fn no_share_exceeds_the_gpu() {
        let full = KernelDemand {
            sm_active: 1000,
            dram_active: 1000,
            ..AVERAGE
        };
        for i in 0..4 {
            let kernel = train_kernel(&full, i);
            assert!(kernel.sm_active <= 1000 && kernel.dram_active <= 1000);
        }
    }

    #[test]
    fn the_grid_follows_the_demand() {
        assert_eq!(AVERAGE.grid(100), (60, 1024));
        let narrow = KernelDemand {
            sm_active: 120,
            sm_occupancy: 20,
            ..AVERAGE
        };
        assert_eq!(narrow.grid(100), (12, 352));
        let nothing = KernelDemand {
            sm_active: 0,
            sm_occupancy: 0,
            ..AVERAGE
        };
        assert_eq!(nothing.grid(100), (1, 32));
    }
}
