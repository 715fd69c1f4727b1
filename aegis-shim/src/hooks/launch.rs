//! Counting launches, copies and memsets.
//!
//! The exported functions (see `macros.rs`) add one to the thread's launch line, launches also leave
//! a mark in its trace, and jump to the driver: no clock, no atomic addition, no call. What happens before a thread has its line is here.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use aegis_common::abi::ledger::{LAUNCH_LINES, LaunchLine};
use aegis_common::abi::message::Op;
use aegis_common::abi::{GpuUuid, NO_GPU};
use core::mem::offset_of;
use shim_core::sys::syscall;

use super::real::{self, Target};
use crate::gpus;
use crate::session;
use crate::sys::state::{Cell, State, state};
use crate::sys::thread;

/// The line that threads without one of their own share, with atomic additions.
const SHARED_LINE: usize = LAUNCH_LINES - 1;

/// Marks a thread for which no line was left. Its null line sends every launch here.
static OVERFLOW: Cell = Cell {
    line: AtomicPtr::new(core::ptr::null_mut()),
    trace: AtomicPtr::new(core::ptr::null_mut()),
    owner: AtomicU32::new(0),
};

/// Counts a call for a thread that has no line yet, and returns the function to jump to.
pub(super) extern "C" fn count_slowly(hook: usize, counter: usize) -> usize {
    extern "C" fn missing() -> i32 {
        real::NO_DEVICE
    }
    match real::find(hook) {
        Target::Driver(address) => {
            count(counter);
            address
        }
        Target::Other(address) => address,
        Target::Missing => missing as *const () as usize,
    }
}

#[cold]
fn count(counter: usize) {
    let active = session::active();
    let Some(state) = state() else { return };
    let copies =
        counter == offset_of!(LaunchLine, copies) || counter == offset_of!(LaunchLine, memsets);
    if copies && state.first_launch.load(Ordering::Relaxed) == 0 {
        // Were the thread given its line now, its first launch would not come by here.
        add_shared(state, counter);
        return;
    }
    if !copies {
        note_first_launch(state, active);
    }
    match claim(state, active.is_some()) {
        Some(line) => {
            if let Some(count) = field(line, counter) {
                // Only this thread writes the line.
                count.store(
                    count.load(Ordering::Relaxed).wrapping_add(1),
                    Ordering::Relaxed,
                );
            }
        }
        None => add_shared(state, counter),
    }
}

fn note_first_launch(state: &'static State, active: Option<&'static State>) {
    if state
        .first_launch
        .compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed)
        .is_err()
    {
        return;
    }
    let Some(state) = active else { return };
    if let Some(header) = state.shared.header() {
        header
            .first_launch_ns
            .store(syscall::monotonic_ns(), Ordering::Relaxed);
    }
    let gpu = gpus::current(state).and_then(|place| state.shared.gpu(place.gpu));
    session::tell(
        state,
        Op::FirstLaunch,
        gpu.map_or(GpuUuid::default(), gpus::uuid),
        0,
    );
}

fn add_shared(state: &State, counter: usize) {
    let line = state.shared.launch_line(SHARED_LINE);
    if let Some(count) = line.and_then(|line| field(line, counter)) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Gives the thread a line. `None`: all are taken by living threads.
fn claim(state: &'static State, active: bool) -> Option<&'static LaunchLine> {
    let slot = thread::slot();
    // SAFETY: this thread's own slot.
    let mine = unsafe { (*slot).cell }.cast_const();
    if core::ptr::eq(mine, &raw const OVERFLOW) {
        return None;
    }
    let tid = syscall::gettid() as u32;
    // After a fork the thread still has a cell, wiped: take it if no other thread did.
    let old = state
        .cells
        .iter()
        .position(|cell| core::ptr::eq(cell, mine));
    let index = old
        .filter(|index| take(state, *index, 0, tid))
        .or_else(|| (0..SHARED_LINE).find(|index| take(state, *index, 0, tid)))
        .or_else(|| reclaim(state, tid));
    let cell = index.and_then(|index| state.cells.get(index));
    let chosen = cell.map_or(&raw const OVERFLOW, |cell| &raw const *cell);
    let line = index.and_then(|index| {
        if active {
            state.shared.launch_line(index)
        } else {
            state.spare_lines.get(index)
        }
    });
    if let (Some(cell), Some(line)) = (cell, line) {
        let gpu = session::active().filter(|_| active).and_then(gpus::current);
        line.gpu.store(
            gpu.map_or(NO_GPU, |place| place.gpu as u32),
            Ordering::Relaxed,
        );
        line.tid.store(u64::from(tid), Ordering::Relaxed);
        let trace = index
            .filter(|_| active)
            .and_then(|index| state.shared.trace(index));
        let trace = core::ptr::from_ref(trace.unwrap_or(&state.spare_trace)).cast_mut();
        cell.trace.store(trace, Ordering::Release);
        cell.line
            .store(core::ptr::from_ref(line).cast_mut(), Ordering::Release);
    }
    if let Some(header) = state.shared.header() {
        header.launch_lines.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: this thread's own slot; cells are never unmapped.
    unsafe { (*slot).cell = chosen.cast_mut() };
    line
}

fn take(state: &State, index: usize, from: u32, tid: u32) -> bool {
    state.cells.get(index).is_some_and(|cell| {
        cell.owner
            .compare_exchange(from, tid, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    })
}

/// The line of a thread that ended. Its counts stay: they are sums over the line's owners.
#[cold]
fn reclaim(state: &State, tid: u32) -> Option<usize> {
    let pid = syscall::getpid();
    (0..SHARED_LINE).find(|index| {
        let owner = state
            .cells
            .get(*index)
            .map_or(0, |cell| cell.owner.load(Ordering::Acquire));
        owner != 0 && !syscall::thread_exists(pid, owner as i32) && take(state, *index, owner, tid)
    })
}

fn field(line: &LaunchLine, counter: usize) -> Option<&AtomicU64> {
    [
        (offset_of!(LaunchLine, kernels), &line.kernels),
        (offset_of!(LaunchLine, graphs), &line.graphs),
        (offset_of!(LaunchLine, copies), &line.copies),
        (offset_of!(LaunchLine, memsets), &line.memsets),
        (offset_of!(LaunchLine, host_functions), &line.host_functions),
    ]
    .into_iter()
    .find_map(|(offset, field)| (offset == counter).then_some(field))
}
