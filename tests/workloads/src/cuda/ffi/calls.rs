//! One safe method per driver call. Outputs are owned here, so no caller passes a bad pointer.

use std::ffi::{c_int, c_void};
use std::ptr;

use super::api::{Api, CuContext, CuFunction, CuGraph, CuGraphExec, CuModule, CuStream};
use crate::error::WorkloadError;
use crate::kernel::{ENTRY, KernelDemand, PTX};

/// A context.
#[derive(Clone, Copy)]
pub struct Context(CuContext);

/// A stream.
#[derive(Clone, Copy)]
pub struct Stream(pub(super) CuStream);

/// A loaded kernel.
#[derive(Clone, Copy)]
pub struct Function(CuFunction);

/// An executable graph.
#[derive(Clone, Copy)]
pub struct Graph(CuGraphExec);

/// Largest launch argument list of [`ENTRY`].
const ARGUMENTS: usize = 4;

/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`.
const MULTIPROCESSOR_COUNT: c_int = 16;

impl Api {
    /// `cuInit`
    ///
    /// # Errors
    /// The driver's code.
    pub fn initialise(&self) -> Result<(), WorkloadError> {
        // SAFETY: no pointers; may be called at any time.
        check("cuInit", unsafe { (self.init)(0) })
    }

    /// `cuDeviceGetCount`
    ///
    /// # Errors
    /// The driver's code.
    pub fn count(&self) -> Result<u32, WorkloadError> {
        let mut count: c_int = 0;
        // SAFETY: the output lives through the call.
        check("cuDeviceGetCount", unsafe {
            (self.device_count)(&raw mut count)
        })?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// `cuDeviceGet`
    ///
    /// # Errors
    /// The driver's code.
    pub fn device(&self, ordinal: u32) -> Result<c_int, WorkloadError> {
        let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        let mut device: c_int = 0;
        // SAFETY: the output lives through the call.
        check("cuDeviceGet", unsafe {
            (self.device_get)(&raw mut device, ordinal)
        })?;
        Ok(device)
    }

    /// `cuDeviceGetAttribute` of the number of multiprocessors.
    ///
    /// # Errors
    /// The driver's code.
    pub fn multiprocessors(&self, device: c_int) -> Result<u32, WorkloadError> {
        let mut value: c_int = 0;
        // SAFETY: the output lives through the call.
        let code = unsafe { (self.device_attribute)(&raw mut value, MULTIPROCESSOR_COUNT, device) };
        check("cuDeviceGetAttribute", code)?;
        Ok(u32::try_from(value).unwrap_or(1))
    }

    /// `cuDevicePrimaryCtxRetain`
    ///
    /// # Errors
    /// The driver's code.
    pub fn retain_primary(&self, device: c_int) -> Result<Context, WorkloadError> {
        let mut context: CuContext = ptr::null_mut();
        // SAFETY: the output lives through the call.
        let code = unsafe { (self.primary_retain)(&raw mut context, device) };
        check("cuDevicePrimaryCtxRetain", code)?;
        Ok(Context(context))
    }

    /// `cuCtxSetCurrent`
    ///
    /// # Errors
    /// The driver's code.
    pub fn set_current(&self, context: Context) -> Result<(), WorkloadError> {
        // SAFETY: a context from `retain_primary`, never released by this program.
        check("cuCtxSetCurrent", unsafe {
            (self.ctx_set_current)(context.0)
        })
    }

    /// `cuMemGetInfo`: free and total bytes.
    ///
    /// # Errors
    /// The driver's code.
    pub fn memory(&self) -> Result<(u64, u64), WorkloadError> {
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: both outputs live through the call.
        let code = unsafe { (self.mem_get_info)(&raw mut free, &raw mut total) };
        check("cuMemGetInfo", code)?;
        Ok((free as u64, total as u64))
    }

    /// `cuMemAlloc`
    ///
    /// # Errors
    /// [`WorkloadError::NoMemory`], or the driver's code.
    pub fn allocate(&self, bytes: usize) -> Result<u64, WorkloadError> {
        let mut address = 0;
        // SAFETY: the output lives through the call.
        check("cuMemAlloc", unsafe {
            (self.mem_alloc)(&raw mut address, bytes)
        })?;
        Ok(address)
    }

    /// `cuMemFree`
    ///
    /// # Errors
    /// The driver's code.
    pub fn release(&self, address: u64) -> Result<(), WorkloadError> {
        // SAFETY: an address is a number to the driver, which checks it.
        check("cuMemFree", unsafe { (self.mem_free)(address) })
    }

    /// `cuMemcpyHtoDAsync` from pageable memory.
    ///
    /// # Errors
    /// The driver's code.
    pub fn upload(&self, dst: u64, data: &[u8], stream: Stream) -> Result<(), WorkloadError> {
        let from: *const c_void = data.as_ptr().cast();
        // SAFETY: `data` is readable for its length, and from pageable memory the driver has taken
        // the bytes when the call returns.
        let code = unsafe { (self.memcpy_htod_async)(dst, from, data.len(), stream.0) };
        check("cuMemcpyHtoDAsync", code)
    }

    /// `cuMemcpyDtoH`
    ///
    /// # Errors
    /// The driver's code.
    pub fn download(&self, src: u64, into: &mut [u8]) -> Result<(), WorkloadError> {
        let to: *mut c_void = into.as_mut_ptr().cast();
        // SAFETY: `into` is writable for its length; the copy is done when the call returns.
        check("cuMemcpyDtoH", unsafe {
            (self.memcpy_dtoh)(to, src, into.len())
        })
    }

    /// `cuStreamCreate` of a stream that does not wait for the default stream.
    ///
    /// # Errors
    /// The driver's code.
    pub fn stream(&self) -> Result<Stream, WorkloadError> {
        const CU_STREAM_NON_BLOCKING: u32 = 1;
        let mut stream: CuStream = ptr::null_mut();
        // SAFETY: the output lives through the call.
        let code = unsafe { (self.stream_create)(&raw mut stream, CU_STREAM_NON_BLOCKING) };
        check("cuStreamCreate", code)?;
        Ok(Stream(stream))
    }

    /// `cuStreamSynchronize`
    ///
    /// # Errors
    /// The driver's code.
    pub fn wait(&self, stream: Stream) -> Result<(), WorkloadError> {
        // SAFETY: a stream from `stream`, never destroyed by this program.
        check("cuStreamSynchronize", unsafe {
            (self.stream_synchronize)(stream.0)
        })
    }

    /// `cuModuleLoadData` of [`PTX`] and `cuModuleGetFunction` of [`ENTRY`].
    ///
    /// # Errors
    /// The driver's code.
    pub fn timed_kernel(&self) -> Result<Function, WorkloadError> {
        let mut module: CuModule = ptr::null_mut();
        // SAFETY: the output lives through the call, the text is NUL-terminated.
        let code = unsafe { (self.module_load_data)(&raw mut module, PTX.as_ptr().cast()) };
        check("cuModuleLoadData", code)?;
        let name =
            std::ffi::CString::new(ENTRY).map_err(|e| WorkloadError::NoDriver(e.to_string()))?;
        let mut function: CuFunction = ptr::null_mut();
        // SAFETY: a module just loaded, a NUL-terminated name, an output that lives through the call.
        let code = unsafe { (self.module_get_function)(&raw mut function, module, name.as_ptr()) };
        check("cuModuleGetFunction", code)?;
        Ok(Function(function))
    }

    /// `cuLaunchKernel` of the timed kernel.
    ///
    /// # Errors
    /// The driver's code.
    pub fn launch(
        &self,
        function: Function,
        (blocks, threads): (u32, u32),
        stream: Stream,
        demand: &KernelDemand,
    ) -> Result<(), WorkloadError> {
        let mut demand = *demand;
        let mut arguments: [*mut c_void; ARGUMENTS] = [
            (&raw mut demand.duration_ns).cast(),
            (&raw mut demand.sm_active).cast(),
            (&raw mut demand.sm_occupancy).cast(),
            (&raw mut demand.dram_active).cast(),
        ];
        // SAFETY: function and stream are of the current context; the arguments have the kernel's
        // number and types, and are copied before the call returns.
        let code = unsafe {
            (self.launch_kernel)(
                function.0,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                0,
                stream.0,
                arguments.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        check("cuLaunchKernel", code)
    }

    /// `cuStreamBeginCapture`, `work`, `cuStreamEndCapture` and `cuGraphInstantiateWithFlags`: what
    /// `work` launches on the stream, as a graph.
    ///
    /// # Errors
    /// Those of `work`, or the driver's code.
    pub fn capture(
        &self,
        stream: Stream,
        work: impl FnOnce() -> Result<(), WorkloadError>,
    ) -> Result<Graph, WorkloadError> {
        const CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: c_int = 1;
        // SAFETY: a stream from `stream`, never destroyed by this program.
        check("cuStreamBeginCapture", unsafe {
            (self.stream_begin_capture)(stream.0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        })?;
        work()?;
        let mut graph: CuGraph = ptr::null_mut();
        // SAFETY: the stream is captured, the output lives through the call.
        check("cuStreamEndCapture", unsafe {
            (self.stream_end_capture)(stream.0, &raw mut graph)
        })?;
        let mut executable: CuGraphExec = ptr::null_mut();
        // SAFETY: the graph just captured, an output that lives through the call.
        check("cuGraphInstantiateWithFlags", unsafe {
            (self.graph_instantiate)(&raw mut executable, graph, 0)
        })?;
        Ok(Graph(executable))
    }

    /// `cuGraphLaunch`
    ///
    /// # Errors
    /// The driver's code.
    pub fn launch_graph(&self, graph: Graph, stream: Stream) -> Result<(), WorkloadError> {
        // SAFETY: an executable graph from `capture`, never destroyed by this program.
        check("cuGraphLaunch", unsafe {
            (self.graph_launch)(graph.0, stream.0)
        })
    }
}

pub(super) fn check(call: &'static str, code: u32) -> Result<(), WorkloadError> {
    match code {
        0 => Ok(()),
        2 => Err(WorkloadError::NoMemory { call }),
        code => Err(WorkloadError::Driver {
            call,
            code,
            name: name_of(code),
        }),
    }
}

/// Names of the codes these workloads may meet, from `cuda.h`.
fn name_of(code: u32) -> &'static str {
    match code {
        1 => "CUDA_ERROR_INVALID_VALUE",
        3 => "CUDA_ERROR_NOT_INITIALIZED",
        4 => "CUDA_ERROR_DEINITIALIZED",
        100 => "CUDA_ERROR_NO_DEVICE",
        101 => "CUDA_ERROR_INVALID_DEVICE",
        200 => "CUDA_ERROR_INVALID_IMAGE",
        201 => "CUDA_ERROR_INVALID_CONTEXT",
        214 => "CUDA_ERROR_ECC_UNCORRECTABLE",
        500 => "CUDA_ERROR_NOT_FOUND",
        700 => "CUDA_ERROR_ILLEGAL_ADDRESS",
        719 => "CUDA_ERROR_LAUNCH_FAILED",
        801 => "CUDA_ERROR_NOT_SUPPORTED",
        999 => "CUDA_ERROR_UNKNOWN",
        _ => "unknown",
    }
}
