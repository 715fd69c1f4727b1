//! One GPU's copy of the model: what a step allocates, launches and copies there.

use crate::allocator::{CachingAllocator, Usage};
use crate::batch::Batch;
use crate::device::{Device, DevicePtr};
use crate::error::WorkloadError;
use crate::kernel::{eval_kernel, optimizer_kernel, train_kernel};
use crate::plan::{LAYERS, Plan, STATE_PIECES};

/// A model on one GPU.
pub struct Replica<D> {
    device: D,
    plan: Plan,
    allocator: CachingAllocator,
    batch: Batch,
    on_gpu: Option<DevicePtr>,
    has_gradients: bool,
    has_optimizer: bool,
}

impl<D: Device> Replica<D> {
    /// A model that is not loaded yet.
    pub fn new(device: D, plan: &Plan) -> Self {
        Self {
            device,
            plan: plan.clone(),
            allocator: CachingAllocator::new(),
            batch: Batch::new(plan.batch),
            on_gpu: None,
            has_gradients: false,
            has_optimizer: false,
        }
    }

    /// Whether this is the process's first GPU.
    pub fn is_first(&self) -> bool {
        self.device.ordinal() == 0 || self.plan.gpus == 1
    }

    /// What the allocator holds.
    pub fn usage(&self) -> Usage {
        self.allocator.usage()
    }

    /// The GPU, to look at what it was asked.
    pub fn device(&mut self) -> &mut D {
        &mut self.device
    }

    /// Allocates the weights and the batch's buffer.
    pub fn load(&mut self) -> Result<(), WorkloadError> {
        self.keep(self.plan.weights)?;
        self.on_gpu = Some(self.allocator.alloc(&mut self.device, self.plan.batch)?);
        Ok(())
    }

    /// Queues training step `step`'s (from 1) copy, forward and backward pass.
    pub fn forward_backward(&mut self, step: u64) -> Result<(), WorkloadError> {
        self.batch.fill(step);
        if let Some(ptr) = self.on_gpu {
            self.device.upload(ptr, self.batch.bytes())?;
        }
        let demand = self.plan.demand();
        let forward = self.plan.kernels.div_ceil(3);
        let mut activations = Vec::new();
        for layer in 0..LAYERS {
            if self.plan.activations > 0 {
                let bytes = self.plan.activations / LAYERS;
                activations.push(self.allocator.alloc(&mut self.device, bytes)?);
            }
            for index in share(forward, layer) {
                self.device.launch(&train_kernel(&demand, index))?;
            }
        }
        if !self.has_gradients {
            self.keep(self.plan.gradients)?;
            self.has_gradients = true;
        }
        for index in forward..self.plan.kernels {
            self.device.launch(&train_kernel(&demand, index))?;
        }
        self.release(activations)
    }

    /// Waits for the queued work and, every `verify_every` steps, checks the batch on the GPU.
    pub fn wait(&mut self, step: u64) -> Result<(), WorkloadError> {
        self.device.synchronize()?;
        let due = self.plan.verify_every > 0 && step.is_multiple_of(self.plan.verify_every);
        match self.on_gpu {
            Some(ptr) if due => self.batch.verify(&mut self.device, ptr, step),
            _ => Ok(()),
        }
    }

    /// Queues the optimizer's kernels. Its state appears at the end of the first step.
    pub fn update(&mut self, step: u64) -> Result<(), WorkloadError> {
        self.device.launch(&optimizer_kernel(&self.plan.demand()))?;
        if !self.has_optimizer {
            self.keep(self.plan.optimizer)?;
            self.has_optimizer = true;
        }
        if let Some(bytes) = self.plan.growth(step) {
            self.allocator.alloc(&mut self.device, bytes)?;
        }
        if self.plan.leak > 0 {
            self.allocator.alloc(&mut self.device, self.plan.leak)?;
        }
        Ok(())
    }

    /// Queues one evaluation step: forward only, with a larger batch.
    pub fn evaluate(&mut self) -> Result<(), WorkloadError> {
        let demand = self.plan.demand();
        let mut activations = Vec::new();
        if self.plan.activations > 0 {
            for _ in 0..LAYERS {
                let bytes = self.plan.activations / LAYERS;
                activations.push(self.allocator.alloc(&mut self.device, bytes)?);
            }
        }
        let more = self.plan.eval_activations - self.plan.activations;
        if more > 0 {
            activations.push(self.allocator.alloc(&mut self.device, more)?);
        }
        for index in 0..self.plan.kernels {
            self.device.launch(&eval_kernel(&demand, index))?;
        }
        self.release(activations)
    }

    /// Waits for the queued work.
    pub fn synchronize(&mut self) -> Result<(), WorkloadError> {
        self.device.synchronize()
    }

    /// Allocates `bytes` in a few pieces that stay to the end of the process.
    fn keep(&mut self, bytes: u64) -> Result<(), WorkloadError> {
        if bytes > 0 {
            for _ in 0..STATE_PIECES {
                self.allocator
                    .alloc(&mut self.device, bytes / STATE_PIECES)?;
            }
        }
        Ok(())
    }

    fn release(&mut self, blocks: Vec<DevicePtr>) -> Result<(), WorkloadError> {
        for ptr in blocks.into_iter().rev() {
            self.allocator.free(ptr)?;
        }
        Ok(())
    }
}

/// The kernels of `layer` when `total` kernels are spread evenly over the layers.
fn share(total: u32, layer: u64) -> std::ops::Range<u32> {
    let bound = |layer: u64| u32::try_from(u64::from(total) * layer / LAYERS).unwrap_or(total);
    bound(layer)..bound(layer + 1)
}
