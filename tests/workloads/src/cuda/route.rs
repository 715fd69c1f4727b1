//! How a program finds the driver's functions. Interposers have to cover all of these.

use clap::ValueEnum;

use super::ffi::{Api, load};
use crate::error::WorkloadError;

/// A route to the driver's functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Route {
    /// `dlopen("libcuda.so.1")`, then `dlsym` for each versioned symbol.
    Dlsym,
    /// `dlopen`, one `dlsym` of `cuGetProcAddress_v2`, everything else through it by base name.
    Getprocaddress,
    /// Undefined symbols that the dynamic linker binds: the program `workload-linked`.
    Link,
}

/// Where this process gets the driver's functions from, when it wants them.
#[derive(Clone, Copy)]
pub enum DriverSource {
    /// Loads the library at the first use.
    Lazy(Route),
    /// Bound at start by the dynamic linker.
    Linked(Api),
}

impl DriverSource {
    pub(super) fn api(&self) -> Result<Api, WorkloadError> {
        match *self {
            Self::Lazy(route) => load(route),
            Self::Linked(api) => Ok(api),
        }
    }
}
