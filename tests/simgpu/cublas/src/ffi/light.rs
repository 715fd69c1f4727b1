//! cuBLASLt.

use simgpu_cudart::{In, Out};

use super::{Ignored, cublas, give};
use crate::product::enqueue;
use crate::state::{DESCRIPTIONS, LAYOUTS, Layout, Status};

/// `CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT`.
const BATCH_COUNT: i32 = 5;

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Heuristic {
    algorithm: [u64; 8],
    workspace_bytes: usize,
    state: i32,
    waves: f32,
    reserved: [i32; 4],
}

cublas! {
    fn cublasLtCreate(handle: Out<u64>) { give(handle, DESCRIPTIONS.add(())) }
    fn cublasLtDestroy(handle: u64) { DESCRIPTIONS.remove(handle) }

    fn cublasLtMatmulDescCreate(result: Out<u64>, _compute: i32, _scale: i32) {
        give(result, DESCRIPTIONS.add(()))
    }
    fn cublasLtMatmulDescDestroy(description: u64) { DESCRIPTIONS.remove(description) }
    fn cublasLtMatmulDescSetAttribute(description: u64, _attribute: i32, _value: Ignored, _bytes: usize) {
        DESCRIPTIONS.get(description)
    }

    fn cublasLtMatmulPreferenceCreate(result: Out<u64>) { give(result, DESCRIPTIONS.add(())) }
    fn cublasLtMatmulPreferenceDestroy(preference: u64) { DESCRIPTIONS.remove(preference) }
    fn cublasLtMatmulPreferenceSetAttribute(preference: u64, _attribute: i32, _value: Ignored, _bytes: usize) {
        DESCRIPTIONS.get(preference)
    }

    fn cublasLtMatrixLayoutCreate(result: Out<u64>, _kind: i32, rows: u64, columns: u64, _ld: i64) {
        give(result, LAYOUTS.add(Layout { rows, columns, batches: 1 }))
    }
    fn cublasLtMatrixLayoutDestroy(layout: u64) { LAYOUTS.remove(layout) }
    fn cublasLtMatrixLayoutSetAttribute(layout: u64, attribute: i32, value: In<i32>, _bytes: usize) {
        if attribute != BATCH_COUNT {
            return LAYOUTS.get(layout).map(drop);
        }
        let batches = value.get().ok().and_then(|count| u64::try_from(count).ok());
        let batches = batches.ok_or(Status::INVALID_VALUE)?;
        LAYOUTS.update(layout, |layout| layout.batches = batches).map(drop)
    }

    fn cublasLtMatmulAlgoGetHeuristic(
        _handle: u64, _description: u64, _a: u64, _b: u64, _c: u64, _d: u64, _preference: u64,
        wanted: i32, results: Out<Heuristic>, found: Out<i32>,
    ) {
        if wanted < 1 {
            return Err(Status::INVALID_VALUE);
        }
        give(results, Heuristic::default())?;
        give(found, 1)
    }

    fn cublasLtMatmul(
        _handle: u64, _description: u64, _alpha: Ignored, _a: Ignored, a_layout: u64, _b: Ignored,
        _b_layout: u64, _beta: Ignored, _c: Ignored, _c_layout: u64, _d: Ignored, d_layout: u64,
        _algorithm: Ignored, _workspace: Ignored, _bytes: usize, stream: u64,
    ) {
        let (a, d) = (LAYOUTS.get(a_layout)?, LAYOUTS.get(d_layout)?);
        // However the first matrix is transposed, the sum runs over its other side.
        let inner = a.rows.saturating_mul(a.columns) / d.rows.max(1);
        enqueue(stream, d.rows, d.columns, inner, d.batches)
    }
}
