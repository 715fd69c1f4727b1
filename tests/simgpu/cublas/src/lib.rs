//! Stubs of cuBLAS and cuBLASLt for PyTorch on the simulated driver (test only).
//!
//! Matrix products enqueue a kernel that takes the time such a product would; nothing is computed.
//! What PyTorch links but a training loop does not call answers "not supported". Like NVIDIA's, the
//! library has a runtime of its own inside and so reaches the driver by itself.

mod ffi;
mod product;
mod state;
