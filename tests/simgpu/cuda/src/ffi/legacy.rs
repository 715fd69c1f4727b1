//! Names of the 32-bit device pointer era, which the driver still exports beside their `_v2`
//! successors. Their pointers cannot hold an address of this driver: they are not supported, as
//! is what has no counterpart here.

use std::ffi::c_void;

use crate::code::Code;
use crate::ffi::pointers::{In, Out};

unsupported! {
    cuMemGetInfo cuMemAlloc cuMemAllocPitch cuMemFree cuMemGetAddressRange cuDeviceTotalMem
    cuMemHostGetDevicePointer cuModuleGetGlobal
    cuMemcpyHtoD cuMemcpyDtoH cuMemcpyDtoD cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpyDtoDAsync
    cuMemcpy2D cuMemcpy2DUnaligned cuMemcpy2DAsync cuMemcpy3D cuMemcpy3DAsync
    cuMemsetD8 cuMemsetD16 cuMemsetD32 cuMemsetD2D8 cuMemsetD2D16 cuMemsetD2D32
    cuArrayCreate cuArray3DCreate cuStreamBeginCapture cuLinkCreate cuLinkAddData cuLinkAddFile
    cuCtxAttach cuCtxDetach cuLaunch cuLaunchGrid cuLaunchGridAsync cuFuncSetBlockShape
    cuParamSetSize cuParamSetv cuParamSeti cuParamSetf
    cuCheckpointProcessLock cuCheckpointProcessCheckpoint cuCheckpointProcessRestore
    cuCheckpointProcessUnlock cuCheckpointProcessGetState cuCheckpointProcessGetRestoreThreadId
    cuTensorMapEncodeTiled cuTensorMapEncodeIm2col cuTensorMapReplaceAddress
    cuProfilerStart cuProfilerStop
}

export! {
    /// This driver has no export tables, in particular not those of NVIDIA's validity check.
    journalled fn cuGetExportTable(table: Out<*const c_void>, _id: In<[u8; 16]>) |_call| {
        table.set_if_wanted(std::ptr::null());
        Err(Code::NOT_FOUND)
    }
}
