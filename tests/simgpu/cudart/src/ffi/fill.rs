//! Memsets.

use super::Handle;
use crate::error::ok;

/// Of the `int` that callers give, the low byte is set.
fn byte(value: i32) -> u8 {
    value.to_le_bytes()[0]
}

api! {
    fn cudaMemset, cudaMemset_ptds(to: Handle, value: i32, count: usize) |driver| {
        ok((driver.memset_d8)(to, byte(value), count))
    }

    fn cudaMemsetAsync, cudaMemsetAsync_ptsz(to: Handle, value: i32, count: usize, stream: Handle) |driver| {
        ok((driver.memset_d8_async)(to, byte(value), count, stream))
    }

    fn cudaMemset2D, cudaMemset2D_ptds(to: Handle, pitch: usize, value: i32, width: usize, height: usize) |driver| {
        ok((driver.memset_d2d8)(to, pitch, byte(value), width, height))
    }

    fn cudaMemset2DAsync, cudaMemset2DAsync_ptsz(to: Handle, pitch: usize, value: i32, width: usize, height: usize, stream: Handle) |driver| {
        ok((driver.memset_d2d8_async)(to, pitch, byte(value), width, height, stream))
    }
}
