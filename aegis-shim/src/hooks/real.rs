//! The driver's own functions behind the hooks.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::table::{HOOKS, SYMBOLS, address};
use super::{dlsym, driver};
use crate::sys::elf::{Object, object_named};

/// `CUDA_ERROR_NO_DEVICE`: what a hook answers when there is no driver at all (a weak reference
/// that the application would have found null).
pub(crate) const NO_DEVICE: i32 = 100;

/// The driver's function of each hook; 0 until it is known. Read by the launch hooks in assembly.
pub(crate) static REALS: [AtomicUsize; HOOKS] = [const { AtomicUsize::new(0) }; HOOKS];
static START: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// What a call to an exported hook must reach.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// The driver's function.
    Driver(usize),
    /// A function of that name in a library that is not the driver: to be left alone.
    Other(usize),
    /// Nothing.
    Missing,
}

/// The loaded driver, if there is one. Never loads it.
pub(crate) fn driver() -> Option<Object> {
    object_named(c"libcuda.so.1")
}

/// Whether an address lies in the driver whose functions are behind the hooks.
pub(crate) fn in_driver(address: usize) -> bool {
    let known = || (START.load(Ordering::Acquire)..END.load(Ordering::Acquire)).contains(&address);
    // The driver may have been loaded, or unloaded and loaded elsewhere, since the last look.
    known() || (learn() && known())
}

/// The target of a hook.
#[inline]
pub(crate) fn find(hook: usize) -> Target {
    match REALS.get(hook).map(|real| real.load(Ordering::Relaxed)) {
        Some(real) if real != 0 => Target::Driver(real),
        _ => find_slowly(hook),
    }
}

/// The driver's function of a hook, 0 if it is not known yet.
pub(crate) fn known(hook: usize) -> usize {
    REALS
        .get(hook)
        .map_or(0, |real| real.load(Ordering::Relaxed))
}

/// Notes a function that the driver gave out without exporting it.
pub(crate) fn note(hook: usize, function: usize) {
    if let Some(real) = REALS.get(hook) {
        let _ = real.compare_exchange(0, function, Ordering::Release, Ordering::Relaxed);
    }
}

#[cold]
fn find_slowly(hook: usize) -> Target {
    if learn() {
        let real = known(hook);
        if real != 0 {
            return Target::Driver(real);
        }
    }
    let Some(name) = SYMBOLS.get(hook) else {
        return Target::Missing;
    };
    match dlsym::next(name) {
        0 => Target::Missing,
        other if other == address(hook) => Target::Missing,
        other => Target::Other(other),
    }
}

/// Reads the driver's symbols. `false`: no driver is loaded.
#[cold]
pub(crate) fn learn() -> bool {
    let Some(object) = driver() else { return false };
    let (start, end) = object.range();
    for (real, symbol) in REALS.iter().zip(SYMBOLS) {
        real.store(object.function(symbol).unwrap_or(0), Ordering::Relaxed);
    }
    driver::learn(&object);
    START.store(start, Ordering::Release);
    END.store(end, Ordering::Release);
    true
}
