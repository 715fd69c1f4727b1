//! Memsets.

use std::sync::atomic::Ordering::Relaxed;

use crate::code::{Code, Result};
use crate::ffi::copy::check_device;
use crate::graph::{self, Work};
use crate::stream;

fn fill(to: u64, value: u32, width: usize, count: usize, stream: u64) -> Result<()> {
    let (driver, of_stream) = stream::get(stream)?;
    let bytes = count.checked_mul(width).ok_or(Code::INVALID_VALUE)?;
    if bytes == 0 {
        return Ok(());
    }
    if !to.is_multiple_of(width as u64) {
        return Err(Code::INVALID_VALUE);
    }
    check_device(driver, to, bytes as u64)?;
    driver.process.counters().memsets.fetch_add(1, Relaxed);
    graph::submit(
        driver,
        of_stream,
        Work::Fill {
            to,
            value,
            width,
            count,
        },
    )
}

fn fill_rows(
    to: u64,
    pitch: usize,
    value: u32,
    width: usize,
    row: usize,
    rows: usize,
    stream: u64,
) -> Result<()> {
    for index in 0..rows {
        fill(to + (index * pitch) as u64, value, width, row, stream)?;
    }
    Ok(())
}

export! {
    counted [stream = default] fn cuMemsetD8_v2, cuMemsetD8_v2_ptds(to: u64, value: u8, count: usize) {
        fill(to, u32::from(value), 1, count, stream)
    }
    counted [stream = default] fn cuMemsetD16_v2, cuMemsetD16_v2_ptds(to: u64, value: u16, count: usize) {
        fill(to, u32::from(value), 2, count, stream)
    }
    counted [stream = default] fn cuMemsetD32_v2, cuMemsetD32_v2_ptds(to: u64, value: u32, count: usize) {
        fill(to, value, 4, count, stream)
    }
    counted [stream] fn cuMemsetD8Async, cuMemsetD8Async_ptsz(to: u64, value: u8, count: usize, stream: u64) {
        fill(to, u32::from(value), 1, count, stream)
    }
    counted [stream] fn cuMemsetD16Async, cuMemsetD16Async_ptsz(to: u64, value: u16, count: usize, stream: u64) {
        fill(to, u32::from(value), 2, count, stream)
    }
    counted [stream] fn cuMemsetD32Async, cuMemsetD32Async_ptsz(to: u64, value: u32, count: usize, stream: u64) {
        fill(to, value, 4, count, stream)
    }
    counted [stream = default] fn cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds(to: u64, pitch: usize, value: u8, row: usize, rows: usize) {
        fill_rows(to, pitch, u32::from(value), 1, row, rows, stream)
    }
    counted [stream = default] fn cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds(to: u64, pitch: usize, value: u32, row: usize, rows: usize) {
        fill_rows(to, pitch, value, 4, row, rows, stream)
    }
    counted [stream] fn cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz(to: u64, pitch: usize, value: u8, row: usize, rows: usize, stream: u64) {
        fill_rows(to, pitch, u32::from(value), 1, row, rows, stream)
    }
    counted [stream] fn cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz(to: u64, pitch: usize, value: u32, row: usize, rows: usize, stream: u64) {
        fill_rows(to, pitch, value, 4, row, rows, stream)
    }
}
