//! The driver's functions as undefined symbols. `build.rs` reads this file: the stand-in library it
//! links against exports what is declared here, under the driver's SONAME.

use std::ffi::c_void;

use workloads::cuda::ffi::{AllocApi, Api, Symbol};
use workloads::error::WorkloadError;

macro_rules! linked {
    ($($name:ident)+) => {
        #[link(name = "cuda_standin")]
        unsafe extern "C" {
            $(fn $name();)+
        }

        fn address(symbol: &str) -> Option<*mut c_void> {
            match symbol {
                $(stringify!($name) => Some($name as *mut c_void),)+
                _ => None,
            }
        }
    };
}

linked! {
    cuInit
    cuDeviceGetCount
    cuDeviceGet
    cuDeviceGetAttribute
    cuDevicePrimaryCtxRetain
    cuCtxSetCurrent
    cuMemGetInfo_v2
    cuMemAlloc_v2
    cuMemFree_v2
    cuMemcpyHtoDAsync_v2
    cuMemcpyDtoH_v2
    cuStreamCreate
    cuStreamSynchronize
    cuModuleLoadData
    cuModuleGetFunction
    cuLaunchKernel
    cuStreamBeginCapture_v2
    cuStreamEndCapture
    cuGraphInstantiateWithFlags
    cuGraphLaunch
    cuMemAllocAsync
    cuMemFreeAsync
    cuMemAddressReserve
    cuMemAddressFree
    cuMemCreate
    cuMemRelease
    cuMemMap
    cuMemUnmap
    cuMemSetAccess
}

/// The tables of functions that the dynamic linker bound.
pub(crate) fn tables() -> Result<(Api, AllocApi), WorkloadError> {
    let find = |symbol: Symbol| {
        address(symbol.exported)
            .ok_or_else(|| WorkloadError::NoDriver(format!("{} is not linked", symbol.exported)))
    };
    // SAFETY: the dynamic linker bound each name to libcuda.so.1's function of that name.
    let api = unsafe { Api::from_lookup(find) }?;
    // SAFETY: as above.
    let alloc = unsafe { AllocApi::from_lookup(find) }?;
    Ok((api, alloc))
}
