//! The driver functions in use, each with both its names: the one in `cuda.h` that
//! `cuGetProcAddress` takes, and the versioned symbol that the library exports.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::error::WorkloadError;

/// `CUresult`.
pub(super) type CuResult = c_uint;
/// `CUcontext`.
pub(super) type CuContext = *mut c_void;
/// `CUstream`.
pub(super) type CuStream = *mut c_void;
/// `CUmodule`.
pub(super) type CuModule = *mut c_void;
/// `CUgraph`.
pub(super) type CuGraph = *mut c_void;
/// `CUgraphExec`.
pub(super) type CuGraphExec = *mut c_void;
/// `CUfunction`.
pub(super) type CuFunction = *mut c_void;

/// `CUmemLocation`: a device.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Location {
    /// `CU_MEM_LOCATION_TYPE_DEVICE` = 1.
    pub kind: c_int,
    /// The device.
    pub id: c_int,
}

/// `CUmemAllocationProp`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct AllocationProp {
    /// `CU_MEM_ALLOCATION_TYPE_PINNED` = 1.
    pub kind: c_int,
    /// Exportable handle types: none.
    pub handle_types: c_int,
    /// Where.
    pub location: Location,
    /// Windows only.
    pub win32_metadata: *mut c_void,
    /// Compression, RDMA, usage: none.
    pub flags: [u8; 8],
}

/// `CUmemAccessDesc`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct AccessDesc {
    /// Who gets access.
    pub location: Location,
    /// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE` = 3.
    pub flags: c_int,
}

// Sizes of the C structures in cuda.h 12 and 13 on a 64-bit machine.
const _: () = assert!(size_of::<AllocationProp>() == 32 && size_of::<AccessDesc>() == 12);

/// A function's two names.
#[derive(Debug, Clone, Copy)]
pub struct Symbol {
    /// The name in `cuda.h`.
    pub base: &'static str,
    /// The exported symbol.
    pub exported: &'static str,
}

macro_rules! api {
    (
        $(#[$doc:meta])*
        $table:ident {
            $($field:ident: $base:literal as $exported:literal = fn($($arg:ty),* $(,)?);)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $table {
            $(
                #[doc = concat!("`", $base, "`")]
                pub $field: unsafe extern "C" fn($($arg),*) -> CuResult,
            )+
        }

        impl $table {
            /// Fills the table, asking `find` for each function.
            ///
            /// # Safety
            /// What `find` returns for a symbol must be the address of the CUDA driver function of
            /// that name, and stay so for the life of the process.
            ///
            /// # Errors
            /// The first error of `find`, or [`WorkloadError::NoDriver`] for a null address.
            pub unsafe fn from_lookup(
                mut find: impl FnMut(Symbol) -> Result<*mut c_void, WorkloadError>,
            ) -> Result<Self, WorkloadError> {
                Ok(Self {
                    $($field: {
                        let address = find(Symbol { base: $base, exported: $exported })?;
                        if address.is_null() {
                            return Err(WorkloadError::NoDriver(format!("no {}", $exported)));
                        }
                        // SAFETY: not null, and by this function's contract the address of the
                        // driver function whose C prototype this type is.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($arg),*) -> CuResult,
                            >(address)
                        }
                    },)+
                })
            }
        }
    };
}

api! {
    /// The functions that every workload uses.
    Api {
    init: "cuInit" as "cuInit" = fn(c_uint);
    device_count: "cuDeviceGetCount" as "cuDeviceGetCount" = fn(*mut c_int);
    device_get: "cuDeviceGet" as "cuDeviceGet" = fn(*mut c_int, c_int);
    device_attribute: "cuDeviceGetAttribute" as "cuDeviceGetAttribute" = fn(*mut c_int, c_int, c_int);
    primary_retain: "cuDevicePrimaryCtxRetain" as "cuDevicePrimaryCtxRetain" = fn(*mut CuContext, c_int);
    ctx_set_current: "cuCtxSetCurrent" as "cuCtxSetCurrent" = fn(CuContext);
    mem_get_info: "cuMemGetInfo" as "cuMemGetInfo_v2" = fn(*mut usize, *mut usize);
    mem_alloc: "cuMemAlloc" as "cuMemAlloc_v2" = fn(*mut u64, usize);
    mem_free: "cuMemFree" as "cuMemFree_v2" = fn(u64);
    memcpy_htod_async: "cuMemcpyHtoDAsync" as "cuMemcpyHtoDAsync_v2" = fn(u64, *const c_void, usize, CuStream);
    memcpy_dtoh: "cuMemcpyDtoH" as "cuMemcpyDtoH_v2" = fn(*mut c_void, u64, usize);
    stream_create: "cuStreamCreate" as "cuStreamCreate" = fn(*mut CuStream, c_uint);
    stream_synchronize: "cuStreamSynchronize" as "cuStreamSynchronize" = fn(CuStream);
    module_load_data: "cuModuleLoadData" as "cuModuleLoadData" = fn(*mut CuModule, *const c_void);
    module_get_function: "cuModuleGetFunction" as "cuModuleGetFunction" = fn(*mut CuFunction, CuModule, *const c_char);
    launch_kernel: "cuLaunchKernel" as "cuLaunchKernel" = fn(
        CuFunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint,
        CuStream, *mut *mut c_void, *mut *mut c_void,
    );
    stream_begin_capture: "cuStreamBeginCapture" as "cuStreamBeginCapture_v2" = fn(CuStream, c_int);
    stream_end_capture: "cuStreamEndCapture" as "cuStreamEndCapture" = fn(CuStream, *mut CuGraph);
    graph_instantiate: "cuGraphInstantiateWithFlags" as "cuGraphInstantiateWithFlags" = fn(*mut CuGraphExec, CuGraph, u64);
    graph_launch: "cuGraphLaunch" as "cuGraphLaunch" = fn(CuGraphExec, CuStream);
    }
}

api! {
    /// The functions of the allocation families other than `cuMemAlloc`.
    AllocApi {
        mem_alloc_async: "cuMemAllocAsync" as "cuMemAllocAsync" = fn(*mut u64, usize, CuStream);
        mem_free_async: "cuMemFreeAsync" as "cuMemFreeAsync" = fn(u64, CuStream);
        address_reserve: "cuMemAddressReserve" as "cuMemAddressReserve" = fn(*mut u64, usize, usize, u64, u64);
        address_free: "cuMemAddressFree" as "cuMemAddressFree" = fn(u64, usize);
        mem_create: "cuMemCreate" as "cuMemCreate" = fn(*mut u64, usize, *const AllocationProp, u64);
        mem_release: "cuMemRelease" as "cuMemRelease" = fn(u64);
        mem_map: "cuMemMap" as "cuMemMap" = fn(u64, usize, usize, u64, u64);
        mem_unmap: "cuMemUnmap" as "cuMemUnmap" = fn(u64, usize);
        mem_set_access: "cuMemSetAccess" as "cuMemSetAccess" = fn(u64, usize, *const AccessDesc, usize);
    }
}
