//! The driver's own functions behind the hooks.

use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::table::{HOOKS, SYMBOLS, address};
use super::{dlsym, driver};
use crate::sys::elf::{Object, object_named};

/// `CUDA_ERROR_NO_DEVICE`: what a hook answers when there is no driver at all (a weak reference
/// that the application would have found null). NVML has no such number, so there it is an unknown
/// error.
pub(crate) const NO_DEVICE: i32 = 100;

/// The driver's function of each hook; 0 until it is known. Read by the launch hooks in assembly.
pub(crate) static REALS: [AtomicUsize; HOOKS] = [const { AtomicUsize::new(0) }; HOOKS];

/// A library whose functions are hooked.
struct Library {
    soname: &'static CStr,
    start: AtomicUsize,
    end: AtomicUsize,
}

impl Library {
    const fn new(soname: &'static CStr) -> Self {
        Self {
            soname,
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
        }
    }

    fn holds(&self, address: usize) -> bool {
        let start = self.start.load(Ordering::Acquire);
        (start..self.end.load(Ordering::Acquire)).contains(&address)
    }

    fn has(&self, symbol: &CStr) -> bool {
        symbol.to_bytes().starts_with(b"nvml") == core::ptr::eq(self, &raw const NVML)
    }
}

static CUDA: Library = Library::new(c"libcuda.so.1");
static NVML: Library = Library::new(c"libnvidia-ml.so.1");

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
pub(super) fn driver() -> Option<Object> {
    object_named(CUDA.soname)
}

/// The loaded NVML, if there is one. Never loads it.
pub(super) fn nvml() -> Option<Object> {
    object_named(NVML.soname)
}

/// Whether `address` is the function behind a hook, in the library that the hook is meant for.
pub(crate) fn is_behind(hook: usize, address: usize) -> bool {
    let Some(library) = library_of(hook) else {
        return false;
    };
    // The library may have been loaded, or unloaded and loaded elsewhere, since the last look.
    let known = library.holds(address) || (learn_from(library) && library.holds(address));
    known && self::known(hook) == address
}

fn library_of(hook: usize) -> Option<&'static Library> {
    let symbol = SYMBOLS.get(hook)?;
    Some(if NVML.has(symbol) { &NVML } else { &CUDA })
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
    if library_of(hook).is_some_and(learn_from) {
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
pub(super) fn learn() -> bool {
    learn_from(&CUDA)
}

/// Whether the driver's symbols have been read.
pub(super) fn is_learned() -> bool {
    CUDA.start.load(Ordering::Acquire) != 0
}

fn learn_from(library: &'static Library) -> bool {
    let Some(object) = object_named(library.soname) else {
        return false;
    };
    let (start, end) = object.range();
    // What was noted about functions that are not exported holds as long as the library stays.
    let moved = library.start.load(Ordering::Acquire) != start;
    for (real, symbol) in REALS.iter().zip(SYMBOLS) {
        match object.function(symbol) {
            Some(function) if library.has(symbol) => real.store(function, Ordering::Relaxed),
            None if library.has(symbol) && moved => real.store(0, Ordering::Relaxed),
            _ => {}
        }
    }
    if core::ptr::eq(library, &raw const CUDA) {
        driver::learn(&object);
    }
    library.start.store(start, Ordering::Release);
    library.end.store(end, Ordering::Release);
    true
}
