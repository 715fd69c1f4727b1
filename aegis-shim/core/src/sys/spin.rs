//! A lock that needs no initialisation, no allocation and no libc.
//!
//! Zeroed memory is an unlocked lock, so a state page wiped by a fork comes up unlocked. Held for
//! some tens of nanoseconds only, never across a driver call or a system call that waits.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

use super::syscall;

/// Tries before the waiting thread gives its processor away.
const SPINS: u32 = 64;

/// A value behind a spin lock.
pub struct SpinLock<T> {
    locked: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives out one exclusive reference at a time.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    /// An unlocked lock.
    pub const fn new(value: T) -> Self {
        Self {
            locked: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> Guard<'_, T> {
        let mut spins = 0;
        while self.locked.swap(1, Ordering::Acquire) != 0 {
            while self.locked.load(Ordering::Relaxed) != 0 {
                spins += 1;
                if spins < SPINS {
                    core::hint::spin_loop();
                } else {
                    syscall::sched_yield();
                }
            }
        }
        Guard { lock: self }
    }
}

/// Holds the lock until dropped.
pub struct Guard<'a, T> {
    lock: &'a SpinLock<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held, so nobody else has a reference.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, so nobody else has a reference.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.lock.locked.store(0, Ordering::Release);
    }
}
