//! Stream captures: while one is open anywhere in the process nothing is denied.

use core::sync::atomic::Ordering;

use super::driver::{SUCCESS, capture_ended};
use crate::session::active;
use crate::sys::state::State;

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
    ended(stream, false, unsafe { real(stream, graph) })
}

pub(super) unsafe fn end_per_thread(
    real: unsafe extern "C" fn(u64, *mut u64) -> i32,
    stream: u64,
    graph: *mut u64,
) -> i32 {
    // SAFETY: the application's own arguments.
    ended(stream, true, unsafe { real(stream, graph) })
}

/// A failure may end the capture (it was invalidated, a forked stream was not joined) or leave it
/// open (the wrong thread asked): the driver tells. A capture that ended and were thought open
/// would lift the limit for good.
fn ended(stream: u64, per_thread: bool, status: i32) -> i32 {
    if let Some(state) = active()
        && state.captures.open() > 0
        && (status == SUCCESS || capture_ended(stream, per_thread))
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
