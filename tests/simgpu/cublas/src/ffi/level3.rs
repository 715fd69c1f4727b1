//! Matrix products.

use super::{Ignored, cublas, size};
use crate::product::enqueue;
use crate::state::{CONTEXTS, Result};

fn gemm(handle: u64, m: i32, n: i32, k: i32, batches: i32) -> Result<()> {
    let stream = CONTEXTS.get(handle)?.stream;
    enqueue(stream, size(m)?, size(n)?, size(k)?, size(batches)?)
}

/// Products of one type; what follows the sizes is not looked at, and the caller of a C function
/// removes it.
macro_rules! of_type {
    ($($plain:ident $strided:ident $batched:ident;)*) => {
        cublas! {$(
            fn $plain(handle: u64, _transa: i32, _transb: i32, m: i32, n: i32, k: i32) {
                gemm(handle, m, n, k, 1)
            }

            fn $strided(
                handle: u64, _transa: i32, _transb: i32, m: i32, n: i32, k: i32, _alpha: Ignored,
                _a: Ignored, _lda: i32, _stride_a: i64, _b: Ignored, _ldb: i32, _stride_b: i64,
                _beta: Ignored, _c: Ignored, _ldc: i32, _stride_c: i64, batches: i32,
            ) {
                gemm(handle, m, n, k, batches)
            }

            fn $batched(
                handle: u64, _transa: i32, _transb: i32, m: i32, n: i32, k: i32, _alpha: Ignored,
                _a: Ignored, _lda: i32, _b: Ignored, _ldb: i32, _beta: Ignored, _c: Ignored,
                _ldc: i32, batches: i32,
            ) {
                gemm(handle, m, n, k, batches)
            }
        )*}
    };
}

of_type! {
    cublasSgemm_v2 cublasSgemmStridedBatched cublasSgemmBatched;
    cublasDgemm_v2 cublasDgemmStridedBatched cublasDgemmBatched;
    cublasCgemm_v2 cublasCgemmStridedBatched cublasCgemmBatched;
    cublasZgemm_v2 cublasZgemmStridedBatched cublasZgemmBatched;
}

cublas! {
    fn cublasSgemmEx(handle: u64, _transa: i32, _transb: i32, m: i32, n: i32, k: i32) {
        gemm(handle, m, n, k, 1)
    }

    fn cublasGemmEx(handle: u64, _transa: i32, _transb: i32, m: i32, n: i32, k: i32) {
        gemm(handle, m, n, k, 1)
    }

    fn cublasGemmStridedBatchedEx(
        handle: u64, _transa: i32, _transb: i32, m: i32, n: i32, k: i32, _alpha: Ignored,
        _a: Ignored, _type_a: i32, _lda: i32, _stride_a: i64, _b: Ignored, _type_b: i32, _ldb: i32,
        _stride_b: i64, _beta: Ignored, _c: Ignored, _type_c: i32, _ldc: i32, _stride_c: i64,
        batches: i32,
    ) {
        gemm(handle, m, n, k, batches)
    }
}
