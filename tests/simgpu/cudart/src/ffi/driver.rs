//! The driver's functions that this runtime calls, by base name and version.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::lookup::Lookup;
use crate::error::Error;
use crate::runtime::Stream;

/// A pointer that is handed on as it came.
type Place = *mut c_void;
/// A handle or device address.
type Handle = u64;

/// 64 bytes by which another process finds memory or an event.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IpcHandle([u8; 64]);

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Copy2d {
    pub(crate) from_x: usize,
    pub(crate) from_y: usize,
    pub(crate) from_kind: u32,
    pub(crate) from_host: usize,
    pub(crate) from_device: u64,
    pub(crate) from_array: u64,
    pub(crate) from_pitch: usize,
    pub(crate) to_x: usize,
    pub(crate) to_y: usize,
    pub(crate) to_kind: u32,
    pub(crate) to_host: usize,
    pub(crate) to_device: u64,
    pub(crate) to_array: u64,
    pub(crate) to_pitch: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ArrayShape {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) format: u32,
    pub(crate) channels: u32,
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub shared_bytes: u32,
    /// Stream.
    pub stream: u64,
    /// Launch attributes.
    pub attributes: *const c_void,
    /// Their number.
    pub attribute_count: u32,
}

/// In place of a function that the driver does not have.
extern "C" fn missing() -> c_int {
    Error::NEWER_DRIVER.0
}

macro_rules! functions {
    ($($field:ident $name:literal $version:literal ($($argument:ty),*);)*) => {
        /// Functions of the driver; each returns a result code. By the contract of the runtime
        /// API, which hands its callers' pointers on to them, they are safe to call.
        #[derive(Debug)]
        #[expect(missing_docs, reason = "named as in the driver API")]
        pub struct Driver {
            $(pub $field: extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Driver {
            /// Looks every function up.
            pub(crate) fn resolve(lookup: &Lookup, stream: Stream) -> Self {
                let find = |name: &CStr, version| {
                    lookup.find(name, version, stream).unwrap_or(missing as *const ())
                };
                Self {
                    $($field: {
                        let found = find($name, $version);
                        // SAFETY: the driver's function of that name and version has this
                        // signature; one without arguments may be called with any.
                        unsafe {
                            std::mem::transmute::<*const (), extern "C" fn($($argument),*) -> c_int>(found)
                        }
                    },)*
                }
            }
        }
    };
}

functions! {
    init c"cuInit" 2000 (u32);
    driver_get_version c"cuDriverGetVersion" 2020 (Place);
    get_error_string c"cuGetErrorString" 6000 (c_int, *mut *const c_char);
    device_get c"cuDeviceGet" 2000 (*mut c_int, c_int);
    device_get_count c"cuDeviceGetCount" 2000 (Place);
    device_get_name c"cuDeviceGetName" 2000 (Place, c_int, c_int);
    device_get_uuid c"cuDeviceGetUuid" 11040 (Place, c_int);
    device_total_mem c"cuDeviceTotalMem" 3020 (Place, c_int);
    device_get_attribute c"cuDeviceGetAttribute" 2000 (Place, c_int, c_int);
    device_get_pci_bus_id c"cuDeviceGetPCIBusId" 4010 (Place, c_int, c_int);
    device_get_by_pci_bus_id c"cuDeviceGetByPCIBusId" 4010 (Place, *const c_char);
    device_can_access_peer c"cuDeviceCanAccessPeer" 4000 (Place, c_int, c_int);
    device_get_p2p_attribute c"cuDeviceGetP2PAttribute" 8000 (Place, c_int, c_int, c_int);
    device_get_default_mem_pool c"cuDeviceGetDefaultMemPool" 11020 (Place, c_int);
    device_get_mem_pool c"cuDeviceGetMemPool" 11020 (Place, c_int);
    device_set_mem_pool c"cuDeviceSetMemPool" 11020 (c_int, Handle);
    device_graph_mem_trim c"cuDeviceGraphMemTrim" 11040 (c_int);
    device_get_graph_mem_attribute c"cuDeviceGetGraphMemAttribute" 11040 (c_int, c_int, Place);
    primary_ctx_retain c"cuDevicePrimaryCtxRetain" 7000 (*mut Handle, c_int);
    primary_ctx_release c"cuDevicePrimaryCtxRelease" 11000 (c_int);
    primary_ctx_reset c"cuDevicePrimaryCtxReset" 11000 (c_int);
    primary_ctx_set_flags c"cuDevicePrimaryCtxSetFlags" 11000 (c_int, u32);
    primary_ctx_get_state c"cuDevicePrimaryCtxGetState" 7000 (c_int, *mut u32, *mut c_int);
    ctx_get_current c"cuCtxGetCurrent" 4000 (*mut Handle);
    ctx_set_current c"cuCtxSetCurrent" 4000 (Handle);
    ctx_get_device c"cuCtxGetDevice" 2000 (*mut c_int);
    ctx_synchronize c"cuCtxSynchronize" 2000 ();
    ctx_get_limit c"cuCtxGetLimit" 3010 (Place, c_int);
    ctx_set_limit c"cuCtxSetLimit" 3010 (c_int, usize);
    ctx_get_stream_priority_range c"cuCtxGetStreamPriorityRange" 5050 (Place, Place);
    ctx_enable_peer_access c"cuCtxEnablePeerAccess" 4000 (Handle, u32);
    ctx_disable_peer_access c"cuCtxDisablePeerAccess" 4000 (Handle);
    mem_get_info c"cuMemGetInfo" 3020 (Place, Place);
    mem_alloc c"cuMemAlloc" 3020 (Place, usize);
    mem_alloc_pitch c"cuMemAllocPitch" 3020 (Place, Place, usize, usize, u32);
    mem_alloc_managed c"cuMemAllocManaged" 6000 (Place, usize, u32);
    mem_free c"cuMemFree" 3020 (Handle);
    mem_host_alloc c"cuMemHostAlloc" 2020 (Place, usize, u32);
    mem_free_host c"cuMemFreeHost" 2000 (Handle);
    mem_host_register c"cuMemHostRegister" 6050 (Handle, usize, u32);
    mem_host_unregister c"cuMemHostUnregister" 4000 (Handle);
    mem_host_get_device_pointer c"cuMemHostGetDevicePointer" 3020 (Place, Handle, u32);
    mem_host_get_flags c"cuMemHostGetFlags" 2030 (Place, Handle);
    pointer_get_attribute c"cuPointerGetAttribute" 4000 (Place, c_int, Handle);
    array_create c"cuArrayCreate" 3020 (Place, *const ArrayShape);
    array_destroy c"cuArrayDestroy" 2000 (Handle);
    mem_alloc_async c"cuMemAllocAsync" 11020 (Place, usize, Handle);
    mem_alloc_from_pool_async c"cuMemAllocFromPoolAsync" 11020 (Place, usize, Handle, Handle);
    mem_free_async c"cuMemFreeAsync" 11020 (Handle, Handle);
    mem_pool_create c"cuMemPoolCreate" 11020 (Place, Place);
    mem_pool_destroy c"cuMemPoolDestroy" 11020 (Handle);
    mem_pool_trim_to c"cuMemPoolTrimTo" 11020 (Handle, usize);
    mem_pool_get_attribute c"cuMemPoolGetAttribute" 11020 (Handle, c_int, Place);
    mem_pool_set_attribute c"cuMemPoolSetAttribute" 11020 (Handle, c_int, Place);
    mem_pool_set_access c"cuMemPoolSetAccess" 11020 (Handle, Place, usize);
    mem_pool_get_access c"cuMemPoolGetAccess" 11020 (Place, Handle, Place);
    ipc_get_mem_handle c"cuIpcGetMemHandle" 4010 (Place, Handle);
    ipc_open_mem_handle c"cuIpcOpenMemHandle" 11000 (Place, IpcHandle, u32);
    ipc_close_mem_handle c"cuIpcCloseMemHandle" 4010 (Handle);
    ipc_get_event_handle c"cuIpcGetEventHandle" 4010 (Place, Handle);
    ipc_open_event_handle c"cuIpcOpenEventHandle" 4010 (Place, IpcHandle);
    memcpy c"cuMemcpy" 7000 (Handle, Handle, usize);
    memcpy_async c"cuMemcpyAsync" 7000 (Handle, Handle, usize, Handle);
    memcpy_h2d c"cuMemcpyHtoD" 7000 (Handle, Handle, usize);
    memcpy_h2d_async c"cuMemcpyHtoDAsync" 7000 (Handle, Handle, usize, Handle);
    memcpy_d2h c"cuMemcpyDtoH" 7000 (Handle, Handle, usize);
    memcpy_d2h_async c"cuMemcpyDtoHAsync" 7000 (Handle, Handle, usize, Handle);
    memcpy_d2d c"cuMemcpyDtoD" 7000 (Handle, Handle, usize);
    memcpy_d2d_async c"cuMemcpyDtoDAsync" 7000 (Handle, Handle, usize, Handle);
    memcpy_peer c"cuMemcpyPeer" 7000 (Handle, Handle, Handle, Handle, usize);
    memcpy_peer_async c"cuMemcpyPeerAsync" 7000 (Handle, Handle, Handle, Handle, usize, Handle);
    memcpy_2d c"cuMemcpy2DUnaligned" 7000 (*const Copy2d);
    memcpy_2d_async c"cuMemcpy2DAsync" 7000 (*const Copy2d, Handle);
    memset_d8 c"cuMemsetD8" 7000 (Handle, u8, usize);
    memset_d8_async c"cuMemsetD8Async" 7000 (Handle, u8, usize, Handle);
    memset_d2d8 c"cuMemsetD2D8" 7000 (Handle, usize, u8, usize, usize);
    memset_d2d8_async c"cuMemsetD2D8Async" 7000 (Handle, usize, u8, usize, usize, Handle);
    stream_create c"cuStreamCreate" 2000 (Place, u32);
    stream_create_with_priority c"cuStreamCreateWithPriority" 5050 (Place, u32, c_int);
    stream_destroy c"cuStreamDestroy" 4000 (Handle);
    stream_query c"cuStreamQuery" 7000 (Handle);
    stream_synchronize c"cuStreamSynchronize" 7000 (Handle);
    stream_wait_event c"cuStreamWaitEvent" 7000 (Handle, Handle, u32);
    stream_get_priority c"cuStreamGetPriority" 7000 (Handle, Place);
    stream_get_flags c"cuStreamGetFlags" 7000 (Handle, Place);
    stream_get_id c"cuStreamGetId" 12000 (Handle, Place);
    stream_add_callback c"cuStreamAddCallback" 7000 (Handle, Place, Place, u32);
    stream_begin_capture c"cuStreamBeginCapture" 10010 (Handle, c_int);
    stream_end_capture c"cuStreamEndCapture" 10000 (Handle, Place);
    stream_is_capturing c"cuStreamIsCapturing" 10000 (Handle, Place);
    stream_get_capture_info c"cuStreamGetCaptureInfo" 11030 (Handle, Place, Place, Place, Place, Place);
    stream_update_capture_dependencies c"cuStreamUpdateCaptureDependencies" 11030 (Handle, Place, usize, u32);
    thread_exchange_stream_capture_mode c"cuThreadExchangeStreamCaptureMode" 10010 (Place);
    event_create c"cuEventCreate" 2000 (Place, u32);
    event_destroy c"cuEventDestroy" 4000 (Handle);
    event_query c"cuEventQuery" 2000 (Handle);
    event_record c"cuEventRecord" 7000 (Handle, Handle);
    event_record_with_flags c"cuEventRecordWithFlags" 11010 (Handle, Handle, u32);
    event_synchronize c"cuEventSynchronize" 2000 (Handle);
    event_elapsed_time c"cuEventElapsedTime" 2000 (Place, Handle, Handle);
    graph_create c"cuGraphCreate" 10000 (Place, u32);
    graph_destroy c"cuGraphDestroy" 10000 (Handle);
    graph_add_empty_node c"cuGraphAddEmptyNode" 10000 (Place, Handle, Place, usize);
    graph_get_nodes c"cuGraphGetNodes" 10000 (Handle, Place, Place);
    graph_node_get_type c"cuGraphNodeGetType" 10000 (Handle, Place);
    graph_node_get_dependencies c"cuGraphNodeGetDependencies" 10000 (Handle, Place, Place);
    graph_debug_dot_print c"cuGraphDebugDotPrint" 11030 (Handle, *const c_char, u32);
    graph_instantiate_with_flags c"cuGraphInstantiateWithFlags" 11040 (Place, Handle, u64);
    graph_exec_destroy c"cuGraphExecDestroy" 10000 (Handle);
    graph_exec_update c"cuGraphExecUpdate" 12000 (Handle, Handle, Place);
    graph_launch c"cuGraphLaunch" 10000 (Handle, Handle);
    graph_upload c"cuGraphUpload" 11010 (Handle, Handle);
    launch_kernel c"cuLaunchKernel" 7000 (Handle, u32, u32, u32, u32, u32, u32, u32, Handle, Place, Place);
    launch_kernel_ex c"cuLaunchKernelEx" 11060 (*const LaunchConfig, Handle, Place, Place);
    launch_cooperative_kernel c"cuLaunchCooperativeKernel" 9000 (Handle, u32, u32, u32, u32, u32, u32, u32, Handle, Place);
    launch_host_func c"cuLaunchHostFunc" 10000 (Handle, Place, Place);
    library_load_data c"cuLibraryLoadData" 12000 (*mut Handle, *const c_void, *const c_void, *const c_void, u32, *const c_void, *const c_void, u32);
    library_unload c"cuLibraryUnload" 12000 (Handle);
    library_get_kernel c"cuLibraryGetKernel" 12000 (*mut Handle, Handle, *const c_char);
    library_get_global c"cuLibraryGetGlobal" 12000 (*mut Handle, *mut usize, Handle, *const c_char);
    kernel_get_function c"cuKernelGetFunction" 12000 (*mut Handle, Handle);
    func_get_attribute c"cuFuncGetAttribute" 2020 (*mut c_int, c_int, Handle);
    func_set_attribute c"cuFuncSetAttribute" 9000 (Handle, c_int, c_int);
    func_set_cache_config c"cuFuncSetCacheConfig" 3000 (Handle, c_int);
    occupancy_blocks c"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" 7000 (Place, Handle, c_int, usize, u32);
    profiler_start c"cuProfilerStart" 4000 ();
    profiler_stop c"cuProfilerStop" 4000 ();
}
