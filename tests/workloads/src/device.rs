//! What a workload needs of a GPU, as a trait: the training loop runs on the real driver API and,
//! in unit tests, on a fake whose memory is a counter.

use crate::error::WorkloadError;
use crate::kernel::KernelDemand;

/// A device address (`CUdeviceptr`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevicePtr(pub u64);

/// What `cuMemGetInfo` reports, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Free bytes, as this process sees them.
    pub free: u64,
    /// Total capacity.
    pub total: u64,
}

/// Why an allocation failed.
#[derive(Debug)]
pub enum AllocError {
    /// `CUDA_ERROR_OUT_OF_MEMORY`: the one failure that a framework recovers from.
    OutOfMemory,
    /// Anything else the driver may say.
    Other(WorkloadError),
}

/// Allocation on one GPU.
pub trait DeviceMemory {
    /// The ordinal as this process numbers its GPUs.
    fn ordinal(&self) -> u32;

    /// Allocates `bytes` of device memory (`cuMemAlloc`).
    ///
    /// # Errors
    /// [`AllocError::OutOfMemory`] for exactly that driver code, else [`AllocError::Other`].
    fn alloc(&mut self, bytes: u64) -> Result<DevicePtr, AllocError>;

    /// Gives memory back (`cuMemFree`).
    ///
    /// # Errors
    /// The driver's error, for instance for an address it does not know.
    fn free(&mut self, ptr: DevicePtr) -> Result<(), WorkloadError>;

    /// Free and total bytes (`cuMemGetInfo`).
    ///
    /// # Errors
    /// The driver's error.
    fn info(&self) -> Result<MemoryInfo, WorkloadError>;
}

/// One GPU with a current context, a stream and a kernel to launch.
pub trait Device: DeviceMemory {
    /// Queues one kernel on the stream (`cuLaunchKernel`).
    ///
    /// # Errors
    /// The driver's error.
    fn launch(&mut self, demand: &KernelDemand) -> Result<(), WorkloadError>;

    /// Waits for everything queued (`cuStreamSynchronize`).
    ///
    /// # Errors
    /// The driver's error.
    fn synchronize(&mut self) -> Result<(), WorkloadError>;

    /// Queues a copy to the device (`cuMemcpyHtoDAsync`).
    ///
    /// # Errors
    /// The driver's error.
    fn upload(&mut self, dst: DevicePtr, data: &[u8]) -> Result<(), WorkloadError>;

    /// Copies from the device, after all queued work (`cuMemcpyDtoH`).
    ///
    /// # Errors
    /// The driver's error.
    fn download(&mut self, src: DevicePtr, into: &mut [u8]) -> Result<(), WorkloadError>;
}
