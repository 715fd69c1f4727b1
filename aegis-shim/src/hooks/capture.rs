//! Stream captures: while one is open anywhere in the process nothing is denied.

use core::sync::atomic::Ordering;

use super::driver::SUCCESS;
use crate::session::active;
use crate::sys::state::State;

/// `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`: the capture failed earlier and is now over.
const INVALIDATED: i32 = 901;

pub(super) unsafe fn begin_unmoded(real: unsafe extern "C" fn(u64) -> i32, stream: u64) -> i32 {
    // SAFETY: the application's own argument.
    begun(stream, unsafe { real(stream) })
}

pub(super) unsafe fn begin(
    real: unsafe extern "C" fn(u64, i32) -> i32,
    stream: u64,
    mode: i32,
) -> i32 {
    // SAFETY: the application's own arguments.
    begun(stream, unsafe { real(stream, mode) })
}

pub(super) unsafe fn begin_to_graph(
    real: unsafe extern "C" fn(u64, u64, *const u64, *const u8, usize, i32) -> i32,
    stream: u64,
    graph: u64,
    dependencies: *const u64,
    edges: *const u8,
    count: usize,
    mode: i32,
) -> i32 {
    // SAFETY: the application's own arguments.
    begun(stream, unsafe {
        real(stream, graph, dependencies, edges, count, mode)
    })
}

pub(super) unsafe fn end(
    real: unsafe extern "C" fn(u64, *mut u64) -> i32,
    stream: u64,
    graph: *mut u64,
) -> i32 {
    // SAFETY: the application's own arguments.
    let status = unsafe { real(stream, graph) };
    if (status == SUCCESS || status == INVALIDATED)
        && let Some(state) = active()
    {
        publish(state, state.captures.end(stream));
    }
    status
}

pub(super) unsafe fn destroy_stream(real: unsafe extern "C" fn(u64) -> i32, stream: u64) -> i32 {
    // SAFETY: the application's own argument.
    let status = unsafe { real(stream) };
    if status == SUCCESS
        && let Some(state) = active()
        && state.captures.open() > 0
    {
        publish(state, state.captures.forget(stream));
    }
    status
}

fn begun(stream: u64, status: i32) -> i32 {
    if status == SUCCESS
        && let Some(state) = active()
    {
        publish(state, state.captures.begin(stream));
    }
    status
}

fn publish(state: &State, open: u32) {
    if let Some(header) = state.shared.header() {
        header.captures_open.store(open, Ordering::Relaxed);
    }
}
