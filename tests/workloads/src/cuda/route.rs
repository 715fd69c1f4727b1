//! How a program finds the driver's functions, and which of them it allocates with. Interposers have
//! to cover all combinations.

use clap::ValueEnum;

use super::ffi::{AllocApi, Api, Loaded};
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

/// A family of allocation calls, as PyTorch's backends use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// `cuMemAlloc` (PyTorch's `native`).
    Native,
    /// `cuMemAllocAsync` (PyTorch's `cudaMallocAsync`).
    Async,
    /// `cuMemAddressReserve`, `cuMemCreate`, `cuMemMap` (PyTorch's `expandable_segments`).
    Vmm,
}

/// Where this process gets the driver's functions from, when it wants them.
#[derive(Clone, Copy)]
pub struct DriverSource {
    /// The tables of a program that is linked to the driver.
    pub linked: Option<(Api, AllocApi)>,
    /// The route of any other program.
    pub route: Route,
    /// How it allocates.
    pub backend: Backend,
}

impl DriverSource {
    /// The tables; the second only if the backend needs it.
    pub(super) fn tables(&self) -> Result<(Api, Option<AllocApi>), WorkloadError> {
        if let Some((api, alloc)) = self.linked {
            return Ok((api, Some(alloc)));
        }
        let loaded = Loaded::new(self.route)?;
        let alloc = match self.backend {
            Backend::Native => None,
            Backend::Async | Backend::Vmm => Some(loaded.alloc_api()?),
        };
        Ok((loaded.api()?, alloc))
    }
}
