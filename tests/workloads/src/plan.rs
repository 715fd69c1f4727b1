//! A training run's resolved and checked parameters.

use serde::Serialize;

use crate::allocator::rounded;
use crate::error::WorkloadError;
use crate::kernel::KernelDemand;
use crate::preset::Kind;
use crate::train_args::TrainArgs;

/// Pieces in which weights, gradients and optimizer state are allocated: as many large tensors.
pub const STATE_PIECES: u64 = 4;

/// Layers, each of which allocates its share of a step's activations.
pub const LAYERS: u64 = 8;

/// A run's parameters. Memory is per GPU, in bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Name of the kind.
    pub kind: &'static str,
    /// Seconds before the first driver call.
    pub startup_s: f64,
    /// Weights.
    pub weights: u64,
    /// Gradients.
    pub gradients: u64,
    /// Optimizer state.
    pub optimizer: u64,
    /// Peak of a training step's activations.
    pub activations: u64,
    /// Peak of an evaluation step's activations, at least `activations`.
    pub eval_activations: u64,
    /// Epochs.
    pub epochs: u32,
    /// Training steps per epoch.
    pub steps: u32,
    /// Evaluation steps after each epoch.
    pub eval_steps: u32,
    /// Kernels of a step's forward and backward passes.
    pub kernels: u32,
    /// A kernel's mean duration, ns.
    pub kernel_ns: u64,
    /// SM active, permille.
    pub sm_active: u32,
    /// SM occupancy, permille.
    pub sm_occupancy: u32,
    /// DRAM active, permille.
    pub dram_active: u32,
    /// Loader delay before each step, ms.
    pub loader_ms: u64,
    /// Batch size.
    pub batch: u64,
    /// Steps between checks of the batch; 0: never.
    pub verify_every: u64,
    /// GPUs.
    pub gpus: u32,
    /// First training step (from 1) with growth; 0: no growth.
    pub grow_at: u64,
    /// Total growth.
    pub grow_bytes: u64,
    /// Steps over which it is spread.
    pub grow_steps: u64,
    /// Bytes lost per training step.
    pub leak: u64,
    /// Steps between progress lines.
    pub progress_every: u64,
    /// Training steps in all epochs.
    pub steps_total: u64,
    /// The most that one GPU's allocator will hold, without the context's overhead.
    pub peak_bytes: u64,
}

impl Plan {
    /// Fills in the kind's defaults and checks the result.
    ///
    /// # Errors
    /// [`WorkloadError::BadParameter`] naming the option.
    pub fn resolve(kind: Kind, args: &TrainArgs) -> Result<Self, WorkloadError> {
        let preset = kind.preset();
        let weights = args.weights.unwrap_or(preset.weights);
        let default_gradients = if args.weights.is_some() && kind != Kind::Recommender {
            weights
        } else {
            preset.gradients
        };
        let activations = args.activations.unwrap_or(preset.activations);
        let default_eval = match args.activations {
            // Keep the preset's proportion when only the training peak was given.
            Some(given) => given.saturating_add(given / 4),
            None => preset.eval_activations,
        };
        let (sm, occupancy, dram) = if args.saturate {
            (1.0, 0.9, 0.9)
        } else {
            (
                args.sm.unwrap_or(preset.sm),
                args.occupancy.unwrap_or(preset.occupancy),
                args.dram.unwrap_or(preset.dram),
            )
        };
        let mut plan = Self {
            kind: kind.name(),
            startup_s: args.startup.unwrap_or(preset.startup_s),
            weights,
            gradients: args.gradients.unwrap_or(default_gradients),
            optimizer: args
                .optimizer
                .unwrap_or_else(|| weights.saturating_mul(preset.optimizer_per_weight)),
            activations,
            eval_activations: args.eval_activations.unwrap_or(default_eval),
            epochs: args.epochs.unwrap_or(preset.epochs),
            steps: args.steps.unwrap_or(preset.steps),
            eval_steps: args.eval_steps.unwrap_or(preset.eval_steps),
            kernels: args.kernels.unwrap_or(preset.kernels),
            kernel_ns: args
                .kernel_us
                .unwrap_or(preset.kernel_us)
                .saturating_mul(1000),
            sm_active: permille(sm),
            sm_occupancy: permille(occupancy),
            dram_active: permille(dram),
            loader_ms: args.loader_ms.unwrap_or(preset.loader_ms),
            batch: args.batch,
            verify_every: args.verify_every,
            gpus: args.gpus,
            grow_at: args.grow_at.unwrap_or(0),
            grow_bytes: args.grow_bytes.unwrap_or(0),
            grow_steps: args.grow_steps,
            leak: args.leak,
            progress_every: args.progress_every,
            steps_total: 0,
            peak_bytes: 0,
        };
        plan.steps_total = u64::from(plan.epochs) * u64::from(plan.steps);
        plan.check(args)?;
        plan.peak_bytes = plan.peak();
        Ok(plan)
    }

    /// The mean kernel.
    #[must_use]
    pub fn demand(&self) -> KernelDemand {
        KernelDemand {
            duration_ns: self.kernel_ns,
            sm_active: self.sm_active,
            sm_occupancy: self.sm_occupancy,
            dram_active: self.dram_active,
        }
    }

    fn check(&self, args: &TrainArgs) -> Result<(), WorkloadError> {
        let at_least_one = [
            ("epochs", u64::from(self.epochs)),
            ("steps", u64::from(self.steps)),
            ("kernels", u64::from(self.kernels)),
            ("gpus", u64::from(self.gpus)),
            ("batch", self.batch),
            ("grow-steps", self.grow_steps),
            ("progress-every", self.progress_every),
        ];
        for (field, value) in at_least_one {
            if value == 0 {
                return Err(WorkloadError::bad(field, "must be at least 1"));
            }
        }
        for (field, bytes) in [
            ("weights", self.weights),
            ("gradients", self.gradients),
            ("optimizer", self.optimizer),
            ("activations", self.activations),
            ("eval-activations", self.eval_activations),
            ("batch", self.batch),
            ("grow-bytes", self.grow_bytes),
            ("leak", self.leak),
        ] {
            if bytes > MOST_BYTES {
                return Err(WorkloadError::bad(
                    field,
                    "no GPU has 1 TiB; give a smaller size",
                ));
            }
        }
        if self.eval_activations < self.activations {
            return Err(WorkloadError::bad(
                "eval-activations",
                "must be at least --activations: an evaluation uses larger batches",
            ));
        }
        if args.grow_at == Some(0) {
            return Err(WorkloadError::bad("grow-at", "steps count from 1"));
        }
        if self.grow_at > self.steps_total {
            return Err(WorkloadError::bad(
                "grow-at",
                format!("the run has only {} steps", self.steps_total),
            ));
        }
        if args.rank.is_some_and(|rank| rank >= self.gpus) {
            return Err(WorkloadError::bad("rank", "must be less than --gpus"));
        }
        Ok(())
    }

    /// The sum of what the training loop keeps and its larger activation peak, in whole blocks.
    fn peak(&self) -> u64 {
        let pieces = |bytes: u64| match bytes {
            0 => 0,
            _ => STATE_PIECES * rounded(bytes / STATE_PIECES),
        };
        let layers = |bytes: u64| match bytes {
            0 => 0,
            _ => LAYERS * rounded(bytes / LAYERS),
        };
        let train = layers(self.activations);
        let eval = match self.eval_activations - self.activations {
            0 => train,
            more => train + rounded(more),
        };
        let eval = if self.eval_steps == 0 { train } else { eval };
        let leak = match self.leak {
            0 => 0,
            bytes => self.steps_total.saturating_mul(rounded(bytes)),
        };
        let growth = self
            .growth_steps()
            .saturating_mul(rounded(self.grow_bytes / self.grow_steps));
        [
            pieces(self.weights),
            pieces(self.gradients),
            pieces(self.optimizer),
            rounded(self.batch),
            eval,
            leak,
            growth,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// How many steps of the run allocate a piece of the growth.
    fn growth_steps(&self) -> u64 {
        match self.grow_at {
            0 => 0,
            first => self.grow_steps.min(self.steps_total - first + 1),
        }
    }

    /// Bytes by which training step `step` (from 1) grows, if it does.
    #[must_use]
    pub fn growth(&self, step: u64) -> Option<u64> {
        let since = step.checked_sub(self.grow_at)?;
        (self.grow_at > 0 && since < self.grow_steps).then(|| self.grow_bytes / self.grow_steps)
    }
}

/// Above any GPU's memory, and low enough that sums of a few such sizes cannot overflow.
const MOST_BYTES: u64 = 1 << 40;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the option parser admits 0 to 1 only"
)]
fn permille(share: f64) -> u32 {
    (share * 1000.0).round() as u32
}

#[cfg(test)]
mod tests;
