//! A row of the catalogue, and what is assumed where no figure was published.

use super::super::workload::{Memory, Workload};

const MIB: u64 = 1 << 20;

/// What a CUDA context holds: the second GPU of `xlnet_base`, reserved but never used, showed 428 MiB.
pub const CONTEXT_BYTES: u64 = 428 * MIB;

/// Images in the training sets.
const CIFAR: f64 = 50_000.0;
const IMAGENET: f64 = 1_281_167.0;

/// Decoded and augmented per second by one core (assumed).
const JPEGS_PER_CORE: f64 = 110.0;
const SMALL_IMAGES_PER_CORE: f64 = 5_000.0;

/// What decides the assumptions.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Cifar { batch: u32, epochs: u32 },
    ImageNet { batch: u32 },
    Mnist,
    Language { step_s: f64, startup_s: f64 },
    Coco { step_s: f64, startup_s: f64 },
    Voc { step_s: f64, startup_s: f64 },
    Criteo { step_s: f64, startup_s: f64 },
}

pub(super) const MNIST: Kind = Kind::Mnist;

pub(super) const fn cifar(batch: u32, epochs: u32) -> Kind {
    Kind::Cifar { batch, epochs }
}

pub(super) const fn imagenet(batch: u32) -> Kind {
    Kind::ImageNet { batch }
}

pub(super) const fn language(step_s: f64, startup_s: f64) -> Kind {
    Kind::Language { step_s, startup_s }
}

pub(super) const fn coco(step_s: f64, startup_s: f64) -> Kind {
    Kind::Coco { step_s, startup_s }
}

pub(super) const fn voc(step_s: f64, startup_s: f64) -> Kind {
    Kind::Voc { step_s, startup_s }
}

pub(super) const fn criteo(step_s: f64, startup_s: f64) -> Kind {
    Kind::Criteo { step_s, startup_s }
}

/// A row as it was published.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    name: &'static str,
    kind: Kind,
    launches: u32,
    /// MiB as NVML shows them, context included; one entry per GPU.
    peaks: &'static [u64],
    /// Percent.
    utilisation: f64,
    sm_active: f64,
    sm_occupancy: f64,
    dram_active: f64,
    /// From the command to its end.
    total_s: f64,
    log_sensitivity: f64,
    log_pressure: f64,
}

#[expect(
    clippy::too_many_arguments,
    reason = "one argument per column of the table"
)]
pub(super) const fn row(
    name: &'static str,
    kind: Kind,
    launches: u32,
    peaks: &'static [u64],
    utilisation: f64,
    sm_active: f64,
    sm_occupancy: f64,
    dram_active: f64,
    total_s: f64,
    log_sensitivity: f64,
    log_pressure: f64,
) -> Row {
    Row {
        name,
        kind,
        launches,
        peaks,
        utilisation,
        sm_active,
        sm_occupancy,
        dram_active,
        total_s,
        log_sensitivity,
        log_pressure,
    }
}

impl Row {
    /// The program, with the assumptions filled in.
    pub(super) fn workload(&self) -> Workload {
        let startup_s = self.startup_s();
        let solo_s = self.total_s - startup_s;
        let period_s = self.kind.period_s(solo_s);
        let peaks: Vec<u64> = self
            .peaks
            .iter()
            .map(|&mib| (mib * MIB).saturating_sub(CONTEXT_BYTES))
            .collect();
        Workload {
            name: self.name.to_owned(),
            gpus: u32::try_from(peaks.len()).unwrap_or(u32::MAX),
            unused_gpus: u32::try_from(peaks.iter().filter(|&&bytes| bytes == 0).count())
                .unwrap_or(u32::MAX),
            peaks,
            utilisation: self.utilisation / 100.0,
            sm_active: self.sm_active,
            sm_occupancy: self.sm_occupancy,
            dram_active: self.dram_active,
            solo_s,
            startup_s,
            log_sensitivity: self.log_sensitivity,
            log_pressure: self.log_pressure,
            memory: self.memory(period_s),
            cpu_cores: self.kind.cpu_cores(period_s),
            period_s,
            launches: self.launches,
        }
    }

    /// Published quantiles over 50 jobs: median 8.2, p90 10.6, p95 20.6, highest 55.5 s. Small data
    /// sets start sooner, batches with more to decode a little later.
    fn startup_s(&self) -> f64 {
        let doubled = |batch: u32| f64::from(batch.max(1)).log2() - 5.0;
        match self.kind {
            Kind::Mnist => 4.5,
            Kind::Cifar { batch, epochs } => {
                5.5 + 0.5 * doubled(batch)
                    + f64::from(epochs) / 50.0
                    + f64::from(self.launches) / 1e3
            }
            Kind::ImageNet { batch } => 8.0 + 0.5 * doubled(batch) + f64::from(self.launches) / 1e3,
            Kind::Language { startup_s, .. }
            | Kind::Coco { startup_s, .. }
            | Kind::Voc { startup_s, .. }
            | Kind::Criteo { startup_s, .. } => startup_s,
        }
    }

    /// Weights first; activations, cuDNN workspaces and, with Adam, the optimizer's state with the
    /// first steps; a larger evaluation pass or batch later.
    fn memory(&self, period_s: f64) -> Memory {
        let adam = matches!(self.kind, Kind::Language { .. });
        let at_start = match self.kind {
            Kind::Language { .. } => 0.25,
            Kind::Cifar { .. } | Kind::Mnist => 0.2,
            Kind::Criteo { .. } => 0.6,
            Kind::ImageNet { .. } | Kind::Coco { .. } | Kind::Voc { .. } => 0.06,
        };
        let (after_first_steps, peak_at) = match self.kind {
            Kind::Voc { .. } => (0.92, 0.1),
            Kind::Coco { .. } => (0.93, 0.35),
            _ if self.name.starts_with("bert_base") => (0.95, 0.5),
            _ => (1.0, 0.0),
        };
        Memory {
            at_start,
            after_first_steps,
            first_steps_s: if adam {
                3.0 + 4.0 * period_s
            } else {
                2.0 + 3.0 * period_s
            },
            peak_at,
        }
    }
}

impl Kind {
    /// One training step. Known where the epochs and the data set are; else assumed.
    fn period_s(self, solo_s: f64) -> f64 {
        match self {
            Kind::Cifar { batch, epochs } => {
                solo_s / ((CIFAR / f64::from(batch)).ceil() * f64::from(epochs))
            }
            Kind::ImageNet { batch } => solo_s / (IMAGENET / f64::from(batch)).ceil(),
            Kind::Mnist => 0.005,
            Kind::Language { step_s, .. }
            | Kind::Coco { step_s, .. }
            | Kind::Voc { step_s, .. }
            | Kind::Criteo { step_s, .. } => step_s,
        }
    }

    /// Loaders decode what a step consumes; a language model's data are already tokens.
    fn cpu_cores(self, period_s: f64) -> f64 {
        match self {
            Kind::Cifar { batch, .. } => {
                (1.3 + f64::from(batch) / period_s / SMALL_IMAGES_PER_CORE).clamp(1.5, 3.0)
            }
            Kind::ImageNet { batch } => {
                (f64::from(batch) / period_s / JPEGS_PER_CORE).clamp(4.0, 8.0)
            }
            Kind::Mnist => 2.0,
            Kind::Language { .. } => 1.0,
            Kind::Coco { .. } => 6.0,
            Kind::Voc { .. } => 5.0,
            Kind::Criteo { .. } => 4.0,
        }
    }
}
