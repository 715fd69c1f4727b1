//! Allocation and free of linear, managed and stream-ordered memory.

use aegis_common::abi::ledger::{Bypass, Kind};

use super::{driver, pools};
use crate::admit::count_bypass;
use crate::gpus::Place;
use crate::memory::{Request, allocate, free, here};
use crate::session::active;
use crate::sys::state::State;

/// Pitches are a multiple of at least this; only for the estimate before the driver tells.
const PITCH_BYTES: u64 = 512;

pub(super) unsafe fn linear(
    real: unsafe extern "C" fn(*mut u64, usize) -> i32,
    out: *mut u64,
    bytes: usize,
) -> i32 {
    let bytes = bytes as u64;
    let request = Request {
        kind: Kind::Linear,
        bytes: Some(bytes),
    };
    // SAFETY: the application's own arguments.
    let call = || unsafe { real(out, bytes as usize) };
    // SAFETY: after a success the driver has written the address.
    allocate(&request, here, call, || unsafe { (*out, bytes) })
}

pub(super) unsafe fn linear_32(
    real: unsafe extern "C" fn(*mut u32, u32) -> i32,
    out: *mut u32,
    bytes: u32,
) -> i32 {
    let request = Request {
        kind: Kind::Linear,
        bytes: Some(u64::from(bytes)),
    };
    // SAFETY: the application's own arguments.
    let call = || unsafe { real(out, bytes) };
    // SAFETY: after a success the driver has written the address.
    allocate(&request, here, call, || unsafe {
        (u64::from(*out), u64::from(bytes))
    })
}

pub(super) unsafe fn pitch(
    real: unsafe extern "C" fn(*mut u64, *mut usize, usize, usize, u32) -> i32,
    out: *mut u64,
    pitch: *mut usize,
    width: usize,
    height: usize,
    element: u32,
) -> i32 {
    let request = Request {
        kind: Kind::Linear,
        bytes: Some(pitched(width as u64, height as u64)),
    };
    // SAFETY: the application's own arguments.
    let call = || unsafe { real(out, pitch, width, height, element) };
    allocate(&request, here, call, || {
        // SAFETY: after a success the driver has written the pitch.
        let row = unsafe { *pitch };
        // SAFETY: after a success the driver has written the address.
        (unsafe { *out }, (row as u64).saturating_mul(height as u64))
    })
}

pub(super) unsafe fn pitch_32(
    real: unsafe extern "C" fn(*mut u32, *mut u32, u32, u32, u32) -> i32,
    out: *mut u32,
    pitch: *mut u32,
    width: u32,
    height: u32,
    element: u32,
) -> i32 {
    let bytes = pitched(u64::from(width), u64::from(height));
    let request = Request {
        kind: Kind::Linear,
        bytes: Some(bytes),
    };
    // SAFETY: the application's own arguments.
    let call = || unsafe { real(out, pitch, width, height, element) };
    allocate(&request, here, call, || {
        // SAFETY: after a success the driver has written the pitch.
        let row = unsafe { *pitch };
        // SAFETY: after a success the driver has written the address.
        (
            u64::from(unsafe { *out }),
            u64::from(row) * u64::from(height),
        )
    })
}

fn pitched(width: u64, height: u64) -> u64 {
    let row = width
        .checked_next_multiple_of(PITCH_BYTES)
        .unwrap_or(u64::MAX);
    row.saturating_mul(height)
}

pub(super) unsafe fn managed(
    real: unsafe extern "C" fn(*mut u64, usize, u32) -> i32,
    out: *mut u64,
    bytes: usize,
    flags: u32,
) -> i32 {
    let request = Request {
        kind: Kind::Managed,
        bytes: Some(bytes as u64),
    };
    // SAFETY: the application's own arguments.
    let call = || unsafe { real(out, bytes, flags) };
    // SAFETY: after a success the driver has written the address.
    allocate(&request, here, call, || unsafe { (*out, bytes as u64) })
}

/// Memory that a captured allocation describes appears when the graph is launched, not now.
fn captured(stream: u64, per_thread: bool) -> bool {
    let Some(state) = active() else { return false };
    let captured = state.captures.open() > 0 && driver::is_capturing(stream, per_thread);
    if captured {
        count_bypass(state, Bypass::Capture);
    }
    captured
}

/// Host memory is neither charged nor refused.
fn in_host_pool(pool: u64) -> bool {
    active().is_some_and(|state| pools::is_host(state, pool))
}

/// A pool's GPU, which need not be the current one.
fn in_pool(state: &State, pool: u64) -> Option<Place> {
    let here = here(state);
    match state.pools.gpu(pool) {
        Some(gpu) => Some(Place {
            gpu,
            context: here.map_or(0, |here| here.context),
        }),
        None => here,
    }
}

macro_rules! stream_ordered {
    ($allocate:ident, $from_pool:ident, $free:ident, $per_thread:literal) => {
        pub(super) unsafe fn $allocate(
            real: unsafe extern "C" fn(*mut u64, usize, u64) -> i32,
            out: *mut u64,
            bytes: usize,
            stream: u64,
        ) -> i32 {
            // SAFETY: the application's own arguments.
            let call = || unsafe { real(out, bytes, stream) };
            if captured(stream, $per_thread) {
                return call();
            }
            let request = Request {
                kind: Kind::Pool,
                bytes: Some(bytes as u64),
            };
            // SAFETY: after a success the driver has written the address.
            allocate(&request, here, call, || unsafe { (*out, bytes as u64) })
        }

        pub(super) unsafe fn $from_pool(
            real: unsafe extern "C" fn(*mut u64, usize, u64, u64) -> i32,
            out: *mut u64,
            bytes: usize,
            pool: u64,
            stream: u64,
        ) -> i32 {
            // SAFETY: the application's own arguments.
            let call = || unsafe { real(out, bytes, pool, stream) };
            if in_host_pool(pool) || captured(stream, $per_thread) {
                return call();
            }
            let request = Request {
                kind: Kind::Pool,
                bytes: Some(bytes as u64),
            };
            let place = |state: &State| in_pool(state, pool);
            // SAFETY: after a success the driver has written the address.
            allocate(&request, place, call, || unsafe { (*out, bytes as u64) })
        }

        pub(super) unsafe fn $free(
            real: unsafe extern "C" fn(u64, u64) -> i32,
            address: u64,
            stream: u64,
        ) -> i32 {
            // SAFETY: the application's own arguments.
            let call = || unsafe { real(address, stream) };
            if captured(stream, $per_thread) {
                call()
            } else {
                free(address, call)
            }
        }
    };
}

stream_ordered!(stream_ordered, from_pool, free_ordered, false);
stream_ordered!(
    stream_ordered_per_thread,
    from_pool_per_thread,
    free_ordered_per_thread,
    true
);

pub(super) unsafe fn free_linear(real: unsafe extern "C" fn(u64) -> i32, address: u64) -> i32 {
    // SAFETY: the application's own argument.
    free(address, || unsafe { real(address) })
}

pub(super) unsafe fn free_32(real: unsafe extern "C" fn(u32) -> i32, address: u32) -> i32 {
    // SAFETY: the application's own argument.
    free(u64::from(address), || unsafe { real(address) })
}
