//! Reads of kernel memory and of map values: the only `unsafe` here besides the programs' entries.

mod task;

pub(crate) use task::{Task, sender_is_kernel, signal_code};

/// Copies a map value.
#[inline(always)]
pub(crate) fn copy<T: Copy>(value: *const T) -> T {
    // SAFETY: a pointer that a map lookup returned is valid for the value's type until the program
    // ends; at worst the element was reused meanwhile, and any bytes are a valid value here.
    unsafe { *value }
}

/// Adds one to a counter of this processor.
#[inline(always)]
pub(crate) fn increment(counter: *mut u64) {
    // SAFETY: as for `copy`; no other processor writes this slot.
    unsafe { *counter += 1 }
}
