//! Handles and their modes.

use simgpu_cudart::Out;

use super::{Ignored, cublas, give};
use crate::state::{CONTEXTS, Context};

/// `cublasGetVersion`: the API that PyTorch was built against, 12.8.4.
const VERSION: i32 = 120_804;

cublas! {
    fn cublasCreate_v2(handle: Out<u64>) {
        give(handle, CONTEXTS.add(Context::default()))
    }
    fn cublasDestroy_v2(handle: u64) { CONTEXTS.remove(handle) }
    fn cublasGetVersion_v2(_handle: u64, version: Out<i32>) { give(version, VERSION) }
    fn cublasSetStream_v2(handle: u64, stream: u64) {
        CONTEXTS.update(handle, |context| context.stream = stream).map(drop)
    }
    fn cublasGetStream_v2(handle: u64, stream: Out<u64>) {
        give(stream, CONTEXTS.get(handle)?.stream)
    }
    fn cublasSetWorkspace_v2(handle: u64, _workspace: Ignored, _bytes: usize) {
        CONTEXTS.get(handle).map(drop)
    }
    fn cublasSetPointerMode_v2(handle: u64, mode: i32) {
        CONTEXTS.update(handle, |context| context.pointer_mode = mode).map(drop)
    }
    fn cublasGetPointerMode_v2(handle: u64, mode: Out<i32>) {
        give(mode, CONTEXTS.get(handle)?.pointer_mode)
    }
    fn cublasSetMathMode(handle: u64, mode: i32) {
        CONTEXTS.update(handle, |context| context.math_mode = mode).map(drop)
    }
    fn cublasGetMathMode(handle: u64, mode: Out<i32>) {
        give(mode, CONTEXTS.get(handle)?.math_mode)
    }
}
