//! The CUDA driver API as a workload uses it, reached by one of three routes.

mod backend;
pub mod ffi;
mod gpu;
mod route;

pub use ffi::Graph;
pub use gpu::{Driver, Gpu};
pub use route::{Backend, DriverSource, Route};
