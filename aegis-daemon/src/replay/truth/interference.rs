//! How much one program slows another on the same GPU.

use std::collections::HashMap;

use super::cells::Cells;
use super::noise::Noise;
use crate::replay::workload::Workload;

/// Mean ln slowdown over the fitted pairs: `shared/data/README.md`, own fit on 390 directed pair
/// measurements on an A100-40GB, published with the AEGIS artifact.
const MEAN_LOG: f64 = 0.190;
/// The fit's range of ln slowdown.
const MAX_LOG: f64 = 1.6;

/// The asymmetric formula, fitted on the same pairs (MAPE 10.0 % on held-out pairs).
mod asymmetric {
    /// Weight of the other's SM activity by its memory.
    pub(super) const PRESSURE: f64 = 1.802;
    /// Weight of both SM activities.
    pub(super) const SM: f64 = 0.158;
    /// Weight of both DRAM activities.
    pub(super) const DRAM: f64 = 0.196;
    /// Power of the other's memory.
    pub(super) const GAMMA: f64 = 1.062;
    /// The GPU memory it was fitted with, bytes.
    pub(super) const MEMORY: f64 = 40_960.0 * 1_048_576.0;
}

/// Which truth holds. Beyond pairs increments add up: no measurements of three exist anywhere.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Interference {
    /// ln slowdown = .190 + own sensitivity + the other's pressure.
    #[default]
    Additive,
    /// 1 + 1.802·sm_j·mem_j^1.062 + .158·sm_i·sm_j + .196·dram_i·dram_j.
    Asymmetric,
    /// Measured cells; where there is none, [`Interference::Additive`].
    Cells(Cells),
}

/// Slowdowns of ordered pairs, worked out when first needed.
pub(in crate::replay) struct Pairs<'a> {
    workloads: &'a [Workload],
    model: &'a Interference,
    factor: f64,
    noise: f64,
    seed: u64,
    known: HashMap<(usize, usize), f64>,
}

impl<'a> Pairs<'a> {
    /// The pairs of these workloads; `factor` scales what a neighbour adds, `noise` is the
    /// standard deviation of ln slowdown per ordered pair. Measured cells have no noise.
    pub(in crate::replay) fn new(
        workloads: &'a [Workload],
        model: &'a Interference,
        factor: f64,
        noise: f64,
        seed: u64,
    ) -> Self {
        Self {
            workloads,
            model,
            factor,
            noise,
            seed,
            known: HashMap::new(),
        }
    }

    /// By how much the workload at `other` adds to the time of the one at `mine`, as a share of
    /// its time alone; at least 0.
    pub(in crate::replay) fn increment(&mut self, mine: usize, other: usize) -> f64 {
        if let Some(&known) = self.known.get(&(mine, other)) {
            return known;
        }
        let increment = self.work_out(mine, other);
        self.known.insert((mine, other), increment);
        increment
    }

    fn work_out(&self, mine: usize, other: usize) -> f64 {
        let (Some(a), Some(b)) = (self.workloads.get(mine), self.workloads.get(other)) else {
            return 0.0;
        };
        let noise = || Noise::new(self.seed, [mine as u64, other as u64]).normal(self.noise);
        let slowdown = match self.model {
            Interference::Additive => additive(a, b, noise()),
            Interference::Asymmetric => asymmetric(a, b) * noise().exp(),
            Interference::Cells(cells) => cells
                .get(mine, other)
                .unwrap_or_else(|| additive(a, b, noise())),
        };
        (slowdown - 1.0).max(0.0) * self.factor
    }
}

/// ln slowdown by the additive fit, within its range.
pub(in crate::replay) fn log_slowdown(mine: &Workload, other: &Workload, noise: f64) -> f64 {
    let log = MEAN_LOG + mine.log_sensitivity + other.log_pressure + noise;
    log.clamp(0.0, MAX_LOG)
}

fn additive(mine: &Workload, other: &Workload, noise: f64) -> f64 {
    log_slowdown(mine, other, noise).exp()
}

fn asymmetric(mine: &Workload, other: &Workload) -> f64 {
    let peak = other.peaks.iter().copied().max().unwrap_or(0);
    let memory = peak as f64 / asymmetric::MEMORY;
    1.0 + asymmetric::PRESSURE * other.sm_active * memory.powf(asymmetric::GAMMA)
        + asymmetric::SM * mine.sm_active * other.sm_active
        + asymmetric::DRAM * mine.dram_active * other.dram_active
}
