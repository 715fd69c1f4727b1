//! The hook table: every driver symbol that the library stands in front of.
//!
//! `since` is the CUDA version that brought a symbol's signature, as `cuGetProcAddress` numbers it.
//! Left alone on purpose: export tables, driver version, identities and attributes; imports, host
//! memory, address reservation and access rights, where no framework recovers from a refusal.
//! `passed.txt` names all that allocates or launches and is not here, with the reasons; `cargo xtask
//! hooks` compares both with NVIDIA's header.

use core::ffi::{CStr, c_char, c_int};

use aegis_common::abi::ledger::LaunchLine;
use aegis_common::abi::trace::{TRACE_ENTRIES, Trace};
use shim_core::names::{Names, Route};

use super::macros::{enter, hook_table, launched, slow_path};
use super::{alloc, arrays, capture, context, info, launch, nvml, pools, proc_address, real, vmm};

/// `CUresult`.
pub(crate) type CuResult = i32;

/// The hook of exactly that symbol.
pub(crate) fn find(name: &[u8]) -> Option<usize> {
    NAMES.find(name)
}

hook_table! {
    // Start, look-ups, contexts.
    call cuInit [cuInit 2000 legacy]
        (flags: u32) => context::init;
    call cuGetProcAddress [cuGetProcAddress 11030 legacy]
        (name: *const c_char, out: *mut usize, version: c_int, flags: u64) => proc_address::before_12;
    call cuGetProcAddress_v2 [cuGetProcAddress 12000 legacy]
        (name: *const c_char, out: *mut usize, version: c_int, flags: u64, found: *mut c_int) => proc_address::since_12;
    call cuCtxDestroy [cuCtxDestroy 2000 legacy]
        (context: u64) => context::destroy;
    call cuCtxDestroy_v2 [cuCtxDestroy 4000 legacy]
        (context: u64) => context::destroy;
    call cuGreenCtxDestroy [cuGreenCtxDestroy 12040 legacy]
        (green: u64) => context::destroy_green;
    call cuDevicePrimaryCtxRetain [cuDevicePrimaryCtxRetain 7000 legacy]
        (out: *mut u64, device: i32) => context::retain_primary;
    call cuDevicePrimaryCtxRelease [cuDevicePrimaryCtxRelease 7000 legacy]
        (device: i32) => context::release_primary;
    call cuDevicePrimaryCtxReset [cuDevicePrimaryCtxReset 7000 legacy]
        (device: i32) => context::reset_primary;
    call cuDevicePrimaryCtxRelease_v2 [cuDevicePrimaryCtxRelease 11000 legacy]
        (device: i32) => context::release_primary;
    call cuDevicePrimaryCtxReset_v2 [cuDevicePrimaryCtxReset 11000 legacy]
        (device: i32) => context::reset_primary;

    // Linear and managed memory. The forms without _v2 have 32-bit sizes and addresses.
    call cuMemAlloc [cuMemAlloc 2000 legacy]
        (out: *mut u32, bytes: u32) => alloc::linear_32;
    call cuMemAlloc_v2 [cuMemAlloc 3020 legacy]
        (out: *mut u64, bytes: usize) => alloc::linear;
    call cuMemAllocPitch [cuMemAllocPitch 2000 legacy]
        (out: *mut u32, pitch: *mut u32, width: u32, height: u32, element: u32) => alloc::pitch_32;
    call cuMemAllocPitch_v2 [cuMemAllocPitch 3020 legacy]
        (out: *mut u64, pitch: *mut usize, width: usize, height: usize, element: u32) => alloc::pitch;
    call cuMemAllocManaged [cuMemAllocManaged 6000 legacy]
        (out: *mut u64, bytes: usize, flags: u32) => alloc::managed;
    call cuMemFree [cuMemFree 2000 legacy]
        (address: u32) => alloc::free_32;
    call cuMemFree_v2 [cuMemFree 3020 legacy]
        (address: u64) => alloc::free_linear;

    // Stream-ordered memory.
    call cuMemAllocAsync [cuMemAllocAsync 11020 legacy]
        (out: *mut u64, bytes: usize, stream: u64) => alloc::stream_ordered;
    call cuMemAllocFromPoolAsync [cuMemAllocFromPoolAsync 11020 legacy]
        (out: *mut u64, bytes: usize, pool: u64, stream: u64) => alloc::from_pool;
    call cuMemFreeAsync [cuMemFreeAsync 11020 legacy]
        (address: u64, stream: u64) => alloc::free_ordered;
    call cuMemAllocAsync_ptsz [cuMemAllocAsync 11020 per_thread]
        (out: *mut u64, bytes: usize, stream: u64) => alloc::stream_ordered_per_thread;
    call cuMemAllocFromPoolAsync_ptsz [cuMemAllocFromPoolAsync 11020 per_thread]
        (out: *mut u64, bytes: usize, pool: u64, stream: u64) => alloc::from_pool_per_thread;
    call cuMemFreeAsync_ptsz [cuMemFreeAsync 11020 per_thread]
        (address: u64, stream: u64) => alloc::free_ordered_per_thread;
    call cuMemPoolCreate [cuMemPoolCreate 11020 legacy]
        (out: *mut u64, properties: *const vmm::Properties) => pools::create;
    call cuMemPoolDestroy [cuMemPoolDestroy 11020 legacy]
        (pool: u64) => pools::destroy;
    call cuDeviceGetDefaultMemPool [cuDeviceGetDefaultMemPool 11020 legacy]
        (out: *mut u64, device: i32) => pools::of_device;
    call cuDeviceGetMemPool [cuDeviceGetMemPool 11020 legacy]
        (out: *mut u64, device: i32) => pools::of_device;
    call cuMemGetDefaultMemPool [cuMemGetDefaultMemPool 13000 legacy]
        (out: *mut u64, location: *const vmm::Location, kind: i32) => pools::of_location;
    call cuMemGetMemPool [cuMemGetMemPool 13000 legacy]
        (out: *mut u64, location: *const vmm::Location, kind: i32) => pools::of_location;

    // Physical memory.
    call cuMemCreate [cuMemCreate 10020 legacy]
        (out: *mut u64, bytes: usize, properties: *const vmm::Properties, flags: u64) => vmm::create;
    call cuMemRelease [cuMemRelease 10020 legacy]
        (handle: u64) => vmm::release;
    call cuMemRetainAllocationHandle [cuMemRetainAllocationHandle 11000 legacy]
        (out: *mut u64, address: u64) => vmm::retain;
    call cuMemMap [cuMemMap 10020 legacy]
        (address: u64, bytes: usize, offset: usize, handle: u64, flags: u64) => vmm::map;
    call cuMemUnmap [cuMemUnmap 10020 legacy]
        (address: u64, bytes: usize) => vmm::unmap;

    // Arrays.
    call cuArrayCreate [cuArrayCreate 2000 legacy]
        (out: *mut u64, descriptor: *const arrays::Flat<u32>) => arrays::flat;
    call cuArrayCreate_v2 [cuArrayCreate 3020 legacy]
        (out: *mut u64, descriptor: *const arrays::Flat<usize>) => arrays::flat;
    call cuArray3DCreate [cuArray3DCreate 2000 legacy]
        (out: *mut u64, descriptor: *const arrays::Solid<u32>) => arrays::solid;
    call cuArray3DCreate_v2 [cuArray3DCreate 3020 legacy]
        (out: *mut u64, descriptor: *const arrays::Solid<usize>) => arrays::solid;
    call cuArrayDestroy [cuArrayDestroy 2000 legacy]
        (array: u64) => arrays::destroy;
    call cuMipmappedArrayCreate [cuMipmappedArrayCreate 5000 legacy]
        (out: *mut u64, descriptor: *const arrays::Solid<usize>, levels: u32) => arrays::mipmapped;
    call cuMipmappedArrayDestroy [cuMipmappedArrayDestroy 5000 legacy]
        (array: u64) => arrays::destroy;

    // Views.
    call cuMemGetInfo [cuMemGetInfo 2000 legacy]
        (free: *mut u32, total: *mut u32) => info::mem_info_32;
    call cuMemGetInfo_v2 [cuMemGetInfo 3020 legacy]
        (free: *mut usize, total: *mut usize) => info::mem_info;
    call cuDeviceTotalMem [cuDeviceTotalMem 2000 legacy]
        (bytes: *mut u32, device: i32) => info::total_32;
    call cuDeviceTotalMem_v2 [cuDeviceTotalMem 3020 legacy]
        (bytes: *mut usize, device: i32) => info::total;
    call nvmlDeviceGetMemoryInfo [nvmlDeviceGetMemoryInfo 0 legacy]
        (device: u64, memory: *mut nvml::Memory) => nvml::memory_info;
    call nvmlDeviceGetMemoryInfo_v2 [nvmlDeviceGetMemoryInfo 0 legacy]
        (device: u64, memory: *mut nvml::MemoryV2) => nvml::memory_info_v2;

    // Captures.
    call cuStreamBeginCapture [cuStreamBeginCapture 10000 legacy]
        (stream: u64) => capture::begin_unmoded;
    call cuStreamBeginCapture_v2 [cuStreamBeginCapture 10010 legacy]
        (stream: u64, mode: i32) => capture::begin;
    call cuStreamBeginCaptureToGraph [cuStreamBeginCaptureToGraph 12030 legacy]
        (stream: u64, graph: u64, dependencies: *const u64, edges: *const u8, count: usize, mode: i32) => capture::begin_to_graph;
    call cuStreamEndCapture [cuStreamEndCapture 10000 legacy]
        (stream: u64, graph: *mut u64) => capture::end;
    call cuStreamBeginCapture_ptsz [cuStreamBeginCapture 10000 per_thread]
        (stream: u64) => capture::begin_unmoded;
    call cuStreamBeginCapture_v2_ptsz [cuStreamBeginCapture 10010 per_thread]
        (stream: u64, mode: i32) => capture::begin;
    call cuStreamBeginCaptureToGraph_ptsz [cuStreamBeginCaptureToGraph 12030 per_thread]
        (stream: u64, graph: u64, dependencies: *const u64, edges: *const u8, count: usize, mode: i32) => capture::begin_to_graph;
    call cuStreamEndCapture_ptsz [cuStreamEndCapture 10000 per_thread]
        (stream: u64, graph: *mut u64) => capture::end_per_thread;
    call cuStreamDestroy [cuStreamDestroy 2000 legacy]
        (stream: u64) => capture::destroy_stream;
    call cuStreamDestroy_v2 [cuStreamDestroy 4000 legacy]
        (stream: u64) => capture::destroy_stream;

    // Launches.
    launch cuLaunchKernel [cuLaunchKernel 4000 legacy] += kernels of function_and_grid;
    launch cuLaunchKernel_ptsz [cuLaunchKernel 7000 per_thread] += kernels of function_and_grid;
    launch cuLaunchKernelEx [cuLaunchKernelEx 11060 legacy] += kernels of config;
    launch cuLaunchKernelEx_ptsz [cuLaunchKernelEx 11060 per_thread] += kernels of config;
    launch cuLaunchCooperativeKernel [cuLaunchCooperativeKernel 9000 legacy] += kernels of function_and_grid;
    launch cuLaunchCooperativeKernel_ptsz [cuLaunchCooperativeKernel 9000 per_thread] += kernels of function_and_grid;
    launch cuLaunch [cuLaunch 2000 legacy] += kernels of handle;
    launch cuLaunchGrid [cuLaunchGrid 2000 legacy] += kernels of handle;
    launch cuLaunchGridAsync [cuLaunchGridAsync 2000 legacy] += kernels of handle;
    count cuLaunchCooperativeKernelMultiDevice [cuLaunchCooperativeKernelMultiDevice 9000 legacy] += kernels;
    launch cuGraphLaunch [cuGraphLaunch 10000 legacy] += graphs of handle;
    launch cuGraphLaunch_ptsz [cuGraphLaunch 10000 per_thread] += graphs of handle;
    count cuLaunchHostFunc [cuLaunchHostFunc 10000 legacy] += host_functions;
    count cuLaunchHostFunc_ptsz [cuLaunchHostFunc 10000 per_thread] += host_functions;
    count cuLaunchHostFunc_v2 [cuLaunchHostFunc 13010 legacy] += host_functions;
    count cuLaunchHostFunc_v2_ptsz [cuLaunchHostFunc 13010 per_thread] += host_functions;

    // Copies.
    count cuMemcpyHtoD [cuMemcpyHtoD 2000 legacy] += copies;
    count cuMemcpyHtoD_v2 [cuMemcpyHtoD 3020 legacy] += copies;
    count cuMemcpyHtoD_v2_ptds [cuMemcpyHtoD 7000 per_thread] += copies;
    count cuMemcpyDtoH [cuMemcpyDtoH 2000 legacy] += copies;
    count cuMemcpyDtoH_v2 [cuMemcpyDtoH 3020 legacy] += copies;
    count cuMemcpyDtoH_v2_ptds [cuMemcpyDtoH 7000 per_thread] += copies;
    count cuMemcpyDtoD [cuMemcpyDtoD 2000 legacy] += copies;
    count cuMemcpyDtoD_v2 [cuMemcpyDtoD 3020 legacy] += copies;
    count cuMemcpyDtoD_v2_ptds [cuMemcpyDtoD 7000 per_thread] += copies;
    count cuMemcpy2D [cuMemcpy2D 2000 legacy] += copies;
    count cuMemcpy2D_v2 [cuMemcpy2D 3020 legacy] += copies;
    count cuMemcpy2D_v2_ptds [cuMemcpy2D 7000 per_thread] += copies;
    count cuMemcpy2DUnaligned [cuMemcpy2DUnaligned 2000 legacy] += copies;
    count cuMemcpy2DUnaligned_v2 [cuMemcpy2DUnaligned 3020 legacy] += copies;
    count cuMemcpy2DUnaligned_v2_ptds [cuMemcpy2DUnaligned 7000 per_thread] += copies;
    count cuMemcpy3D [cuMemcpy3D 2000 legacy] += copies;
    count cuMemcpy3D_v2 [cuMemcpy3D 3020 legacy] += copies;
    count cuMemcpy3D_v2_ptds [cuMemcpy3D 7000 per_thread] += copies;
    count cuMemcpyHtoDAsync [cuMemcpyHtoDAsync 2000 legacy] += copies;
    count cuMemcpyHtoDAsync_v2 [cuMemcpyHtoDAsync 3020 legacy] += copies;
    count cuMemcpyHtoDAsync_v2_ptsz [cuMemcpyHtoDAsync 7000 per_thread] += copies;
    count cuMemcpyDtoHAsync [cuMemcpyDtoHAsync 2000 legacy] += copies;
    count cuMemcpyDtoHAsync_v2 [cuMemcpyDtoHAsync 3020 legacy] += copies;
    count cuMemcpyDtoHAsync_v2_ptsz [cuMemcpyDtoHAsync 7000 per_thread] += copies;
    count cuMemcpyDtoDAsync [cuMemcpyDtoDAsync 3000 legacy] += copies;
    count cuMemcpyDtoDAsync_v2 [cuMemcpyDtoDAsync 3020 legacy] += copies;
    count cuMemcpyDtoDAsync_v2_ptsz [cuMemcpyDtoDAsync 7000 per_thread] += copies;
    count cuMemcpy2DAsync [cuMemcpy2DAsync 2000 legacy] += copies;
    count cuMemcpy2DAsync_v2 [cuMemcpy2DAsync 3020 legacy] += copies;
    count cuMemcpy2DAsync_v2_ptsz [cuMemcpy2DAsync 7000 per_thread] += copies;
    count cuMemcpy3DAsync [cuMemcpy3DAsync 2000 legacy] += copies;
    count cuMemcpy3DAsync_v2 [cuMemcpy3DAsync 3020 legacy] += copies;
    count cuMemcpy3DAsync_v2_ptsz [cuMemcpy3DAsync 7000 per_thread] += copies;
    count cuMemcpy [cuMemcpy 4000 legacy] += copies;
    count cuMemcpy_ptds [cuMemcpy 7000 per_thread] += copies;
    count cuMemcpyPeer [cuMemcpyPeer 4000 legacy] += copies;
    count cuMemcpyPeer_ptds [cuMemcpyPeer 7000 per_thread] += copies;
    count cuMemcpy3DPeer [cuMemcpy3DPeer 4000 legacy] += copies;
    count cuMemcpy3DPeer_ptds [cuMemcpy3DPeer 7000 per_thread] += copies;
    count cuMemcpyAsync [cuMemcpyAsync 4000 legacy] += copies;
    count cuMemcpyAsync_ptsz [cuMemcpyAsync 7000 per_thread] += copies;
    count cuMemcpyPeerAsync [cuMemcpyPeerAsync 4000 legacy] += copies;
    count cuMemcpyPeerAsync_ptsz [cuMemcpyPeerAsync 7000 per_thread] += copies;
    count cuMemcpy3DPeerAsync [cuMemcpy3DPeerAsync 4000 legacy] += copies;
    count cuMemcpy3DPeerAsync_ptsz [cuMemcpy3DPeerAsync 7000 per_thread] += copies;
    count cuMemcpyAtoA [cuMemcpyAtoA 2000 legacy] += copies;
    count cuMemcpyAtoA_v2 [cuMemcpyAtoA 3020 legacy] += copies;
    count cuMemcpyAtoA_v2_ptds [cuMemcpyAtoA 7000 per_thread] += copies;
    count cuMemcpyAtoD [cuMemcpyAtoD 2000 legacy] += copies;
    count cuMemcpyAtoD_v2 [cuMemcpyAtoD 3020 legacy] += copies;
    count cuMemcpyAtoD_v2_ptds [cuMemcpyAtoD 7000 per_thread] += copies;
    count cuMemcpyDtoA [cuMemcpyDtoA 2000 legacy] += copies;
    count cuMemcpyDtoA_v2 [cuMemcpyDtoA 3020 legacy] += copies;
    count cuMemcpyDtoA_v2_ptds [cuMemcpyDtoA 7000 per_thread] += copies;
    count cuMemcpyHtoA [cuMemcpyHtoA 2000 legacy] += copies;
    count cuMemcpyHtoA_v2 [cuMemcpyHtoA 3020 legacy] += copies;
    count cuMemcpyHtoA_v2_ptds [cuMemcpyHtoA 7000 per_thread] += copies;
    count cuMemcpyAtoH [cuMemcpyAtoH 2000 legacy] += copies;
    count cuMemcpyAtoH_v2 [cuMemcpyAtoH 3020 legacy] += copies;
    count cuMemcpyAtoH_v2_ptds [cuMemcpyAtoH 7000 per_thread] += copies;
    count cuMemcpyHtoAAsync [cuMemcpyHtoAAsync 2000 legacy] += copies;
    count cuMemcpyHtoAAsync_v2 [cuMemcpyHtoAAsync 3020 legacy] += copies;
    count cuMemcpyHtoAAsync_v2_ptsz [cuMemcpyHtoAAsync 7000 per_thread] += copies;
    count cuMemcpyAtoHAsync [cuMemcpyAtoHAsync 2000 legacy] += copies;
    count cuMemcpyAtoHAsync_v2 [cuMemcpyAtoHAsync 3020 legacy] += copies;
    count cuMemcpyAtoHAsync_v2_ptsz [cuMemcpyAtoHAsync 7000 per_thread] += copies;
    count cuMemcpyBatchAsync [cuMemcpyBatchAsync 12080 legacy] += copies;
    count cuMemcpyBatchAsync_ptsz [cuMemcpyBatchAsync 12080 per_thread] += copies;
    count cuMemcpyBatchAsync_v2 [cuMemcpyBatchAsync 13000 legacy] += copies;
    count cuMemcpyBatchAsync_v2_ptsz [cuMemcpyBatchAsync 13000 per_thread] += copies;
    count cuMemcpy3DBatchAsync [cuMemcpy3DBatchAsync 12080 legacy] += copies;
    count cuMemcpy3DBatchAsync_ptsz [cuMemcpy3DBatchAsync 12080 per_thread] += copies;
    count cuMemcpy3DBatchAsync_v2 [cuMemcpy3DBatchAsync 13000 legacy] += copies;
    count cuMemcpy3DBatchAsync_v2_ptsz [cuMemcpy3DBatchAsync 13000 per_thread] += copies;
    count cuMemcpyWithAttributesAsync [cuMemcpyWithAttributesAsync 13020 legacy] += copies;
    count cuMemcpyWithAttributesAsync_ptsz [cuMemcpyWithAttributesAsync 13020 per_thread] += copies;
    count cuMemcpy3DWithAttributesAsync [cuMemcpy3DWithAttributesAsync 13020 legacy] += copies;
    count cuMemcpy3DWithAttributesAsync_ptsz [cuMemcpy3DWithAttributesAsync 13020 per_thread] += copies;
    count cuFabricCpyBatchAsync [cuFabricCpyBatchAsync 13050 legacy] += copies;
    count cuFabricCpyBatchAsync_ptsz [cuFabricCpyBatchAsync 13050 per_thread] += copies;
    count cuMemBatchDecompressAsync [cuMemBatchDecompressAsync 12060 legacy] += copies;
    count cuMemBatchDecompressAsync_ptsz [cuMemBatchDecompressAsync 12060 per_thread] += copies;

    // Memsets.
    count cuMemsetD8 [cuMemsetD8 2000 legacy] += memsets;
    count cuMemsetD8_v2 [cuMemsetD8 3020 legacy] += memsets;
    count cuMemsetD8_v2_ptds [cuMemsetD8 7000 per_thread] += memsets;
    count cuMemsetD8Async [cuMemsetD8Async 3020 legacy] += memsets;
    count cuMemsetD8Async_ptsz [cuMemsetD8Async 7000 per_thread] += memsets;
    count cuMemsetD16 [cuMemsetD16 2000 legacy] += memsets;
    count cuMemsetD16_v2 [cuMemsetD16 3020 legacy] += memsets;
    count cuMemsetD16_v2_ptds [cuMemsetD16 7000 per_thread] += memsets;
    count cuMemsetD16Async [cuMemsetD16Async 3020 legacy] += memsets;
    count cuMemsetD16Async_ptsz [cuMemsetD16Async 7000 per_thread] += memsets;
    count cuMemsetD32 [cuMemsetD32 2000 legacy] += memsets;
    count cuMemsetD32_v2 [cuMemsetD32 3020 legacy] += memsets;
    count cuMemsetD32_v2_ptds [cuMemsetD32 7000 per_thread] += memsets;
    count cuMemsetD32Async [cuMemsetD32Async 3020 legacy] += memsets;
    count cuMemsetD32Async_ptsz [cuMemsetD32Async 7000 per_thread] += memsets;
    count cuMemsetD2D8 [cuMemsetD2D8 2000 legacy] += memsets;
    count cuMemsetD2D8_v2 [cuMemsetD2D8 3020 legacy] += memsets;
    count cuMemsetD2D8_v2_ptds [cuMemsetD2D8 7000 per_thread] += memsets;
    count cuMemsetD2D8Async [cuMemsetD2D8Async 3020 legacy] += memsets;
    count cuMemsetD2D8Async_ptsz [cuMemsetD2D8Async 7000 per_thread] += memsets;
    count cuMemsetD2D16 [cuMemsetD2D16 2000 legacy] += memsets;
    count cuMemsetD2D16_v2 [cuMemsetD2D16 3020 legacy] += memsets;
    count cuMemsetD2D16_v2_ptds [cuMemsetD2D16 7000 per_thread] += memsets;
    count cuMemsetD2D16Async [cuMemsetD2D16Async 3020 legacy] += memsets;
    count cuMemsetD2D16Async_ptsz [cuMemsetD2D16Async 7000 per_thread] += memsets;
    count cuMemsetD2D32 [cuMemsetD2D32 2000 legacy] += memsets;
    count cuMemsetD2D32_v2 [cuMemsetD2D32 3020 legacy] += memsets;
    count cuMemsetD2D32_v2_ptds [cuMemsetD2D32 7000 per_thread] += memsets;
    count cuMemsetD2D32Async [cuMemsetD2D32Async 3020 legacy] += memsets;
    count cuMemsetD2D32Async_ptsz [cuMemsetD2D32Async 7000 per_thread] += memsets;
}
