//! What the application is told about memory.
//!
//! Only a declared `--gpu-mem` changes totals, and the total is fixed at the first look: a total
//! that moves breaks frameworks that size their pools by it (contract C10). Without it the driver's
//! answer stands.

use core::sync::atomic::Ordering;

use aegis_common::abi::ledger::GpuLine;
use aegis_common::abi::{GpuUuid, MAX_GPUS};
use shim_core::account::Account;

use super::driver::SUCCESS;
use crate::gpus;
use crate::session::active;
use crate::sys::state::State;

pub(super) unsafe fn mem_info(
    real: unsafe extern "C" fn(*mut usize, *mut usize) -> i32,
    free: *mut usize,
    total: *mut usize,
) -> i32 {
    // SAFETY: the application's own arguments; either may be null.
    let status = unsafe { real(free, total) };
    if status != SUCCESS {
        return status;
    }
    if let Some(view) = view_here() {
        // SAFETY: null, or written by the driver just now.
        if let Some(free) = unsafe { free.as_mut() } {
            *free = (*free).min(usize::try_from(view.free).unwrap_or(usize::MAX));
        }
        // SAFETY: null, or written by the driver just now.
        if let Some(total) = unsafe { total.as_mut() } {
            *total = (*total).min(usize::try_from(view.total).unwrap_or(usize::MAX));
        }
    }
    status
}

pub(super) unsafe fn mem_info_32(
    real: unsafe extern "C" fn(*mut u32, *mut u32) -> i32,
    free: *mut u32,
    total: *mut u32,
) -> i32 {
    // SAFETY: the application's own arguments; either may be null.
    let status = unsafe { real(free, total) };
    if status != SUCCESS {
        return status;
    }
    if let Some(view) = view_here() {
        // SAFETY: null, or written by the driver just now.
        if let Some(free) = unsafe { free.as_mut() } {
            *free = (*free).min(u32::try_from(view.free).unwrap_or(u32::MAX));
        }
        // SAFETY: null, or written by the driver just now.
        if let Some(total) = unsafe { total.as_mut() } {
            *total = (*total).min(u32::try_from(view.total).unwrap_or(u32::MAX));
        }
    }
    status
}

pub(super) unsafe fn total(
    real: unsafe extern "C" fn(*mut usize, i32) -> i32,
    bytes: *mut usize,
    device: i32,
) -> i32 {
    // SAFETY: the application's own arguments.
    let status = unsafe { real(bytes, device) };
    if status == SUCCESS
        && let Some(shown) = total_of(device)
        // SAFETY: null, or written by the driver just now.
        && let Some(bytes) = unsafe { bytes.as_mut() }
    {
        *bytes = (*bytes).min(usize::try_from(shown).unwrap_or(usize::MAX));
    }
    status
}

pub(super) unsafe fn total_32(
    real: unsafe extern "C" fn(*mut u32, i32) -> i32,
    bytes: *mut u32,
    device: i32,
) -> i32 {
    // SAFETY: the application's own arguments.
    let status = unsafe { real(bytes, device) };
    if status == SUCCESS
        && let Some(shown) = total_of(device)
        // SAFETY: null, or written by the driver just now.
        && let Some(bytes) = unsafe { bytes.as_mut() }
    {
        *bytes = (*bytes).min(u32::try_from(shown).unwrap_or(u32::MAX));
    }
    status
}

/// What is shown of a GPU instead of its real memory.
pub(super) struct View {
    pub(super) free: u64,
    pub(super) total: u64,
}

fn view_here() -> Option<View> {
    let state = active()?;
    // Most jobs declare nothing: then the driver is not asked for the context either.
    if !virtualised(state) {
        return None;
    }
    let gpu = gpus::current(state)?.gpu;
    let total = shown_total(state, gpus::lease_slot(state, gpu)?)?;
    Some(view(total, state.shared.gpu(gpu)))
}

/// The view of a GPU with that identity.
pub(super) fn view_of(state: &State, uuid: &GpuUuid) -> Option<View> {
    let (slot, line) = gpus::by_uuid(state, uuid)?;
    Some(view(shown_total(state, slot)?, line))
}

fn view(total: u64, line: Option<&GpuLine>) -> View {
    let used = line.map_or(0, |line| Account(line).used());
    View {
        free: total.saturating_sub(used),
        total,
    }
}

fn total_of(device: i32) -> Option<u64> {
    let state = active()?;
    if !virtualised(state) {
        return None;
    }
    let gpu = gpus::of_device(state, device)?;
    shown_total(state, gpus::lease_slot(state, gpu)?)
}

/// Whether a total is declared for any GPU.
pub(super) fn virtualised(state: &State) -> bool {
    let lines = state
        .shared
        .terms()
        .map_or(0, |terms| terms.lines.load(Ordering::Acquire));
    (0..(lines as usize).min(MAX_GPUS))
        .filter_map(|slot| state.shared.lease_line(slot))
        .any(|line| line.virtual_total.load(Ordering::Relaxed) != 0)
}

/// The declared total of a lease as it was at the first look; `None` if there was none.
fn shown_total(state: &State, lease_slot: usize) -> Option<u64> {
    /// Stands for "the real total".
    const REAL: u64 = u64::MAX;
    let shown = state.shown_total.get(lease_slot)?;
    let mut total = shown.load(Ordering::Relaxed);
    if total == 0 {
        let line = state.shared.lease_line(lease_slot)?;
        let declared = line.virtual_total.load(Ordering::Relaxed);
        let first = if declared == 0 { REAL } else { declared };
        total = match shown.compare_exchange(0, first, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => first,
            Err(earlier) => earlier,
        };
    }
    (total != REAL).then_some(total)
}
