//! A CUDA runtime of our own for programs on the simulated driver (test only).
//!
//! Written from the public documentation of the runtime API, so that programs built by nvcc and
//! PyTorch, which nobody here wrote, run under the shim on a machine without a GPU. It reaches the
//! driver the way NVIDIA's runtime does (`ffi::lookup`), because that is what the shim must see.
//! NVIDIA's runtime accepts a genuine driver only; nothing of that is imitated here or dodged: its
//! library is not loaded at all. Kernels are not executed, they take simulated time.

mod error;
mod ffi;
mod registry;
mod runtime;

pub use error::{Error, Result};
pub use ffi::driver::{Driver, LaunchConfig};
pub use ffi::{In, Out};
pub use runtime::{context, driver};
