//! Simulated libcuda of the test machine (test only).
//!
//! Exports the driver API under its true names, version suffixes and per-thread-stream variants.
//! Device memory is real memory of the process (so copies carry data), kernels only take time
//! (`simgpu_core::kernel`). What is not simulated is absent or returns `CUDA_ERROR_NOT_SUPPORTED`.
//! There are no export tables: nothing of NVIDIA's driver-validity check is imitated.

mod arena;
mod call;
mod code;
mod context;
mod driver;
mod event;
mod ffi;
mod graph;
mod heap;
mod host;
mod launch;
mod module;
mod pool;
mod ptx;
mod stream;
mod sys;
mod vmm;
