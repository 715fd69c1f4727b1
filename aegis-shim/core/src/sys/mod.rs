//! What needs `unsafe`: system calls, mapped memory, the lock.

pub mod pages;
pub mod spin;
pub mod syscall;

/// Marks plain structures of numbers as valid when zeroed.
macro_rules! zeroable {
    ($($name:ty),+) => {$(
        // SAFETY: a structure of numbers only; all bit patterns are values.
        unsafe impl $crate::sys::pages::Zeroable for $name {}
    )+};
}
/// As `zeroable`, for a generic slot around a zeroable value.
macro_rules! zeroable_slot {
    ($name:ident) => {
        // SAFETY: a number and a value that is valid when zeroed.
        unsafe impl<V: $crate::sys::pages::Zeroable> $crate::sys::pages::Zeroable for $name<V> {}
    };
}
pub(crate) use {zeroable, zeroable_slot};
