//! Vectors, and matrices by vectors.

use super::{cublas, size};
use crate::product::enqueue;
use crate::state::{CONTEXTS, Result};

fn dot(handle: u64, n: i32) -> Result<()> {
    enqueue(CONTEXTS.get(handle)?.stream, 1, 1, size(n)?, 1)
}

fn gemv(handle: u64, m: i32, n: i32) -> Result<()> {
    enqueue(CONTEXTS.get(handle)?.stream, size(m)?, 1, size(n)?, 1)
}

// The rest of each argument list is not looked at, and the caller of a C function removes it.
cublas! {
    fn cublasSdot_v2(handle: u64, n: i32) { dot(handle, n) }
    fn cublasDdot_v2(handle: u64, n: i32) { dot(handle, n) }
    fn cublasDotEx(handle: u64, n: i32) { dot(handle, n) }
    fn cublasSgemv_v2(handle: u64, _trans: i32, m: i32, n: i32) { gemv(handle, m, n) }
    fn cublasDgemv_v2(handle: u64, _trans: i32, m: i32, n: i32) { gemv(handle, m, n) }
}
