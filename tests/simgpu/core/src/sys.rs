//! The unsafe part: the shared mapping, and a mutex that survives the death of its owner.

use std::cell::UnsafeCell;
use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use memmap2::MmapRaw;

use crate::layout::State;

/// A process-shared robust mutex. If the owner dies, the next one gets it: whatever it guards must
/// therefore be usable after any prefix of a critical section (sums are recomputed, not stored).
#[repr(C, align(64))]
pub(crate) struct RobustMutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a pthread mutex is made for use from several threads; it is only used by reference.
unsafe impl Sync for RobustMutex {}
// SAFETY: it is never moved while in use: it lives in the mapping.
unsafe impl Send for RobustMutex {}

/// Holds a [`RobustMutex`].
pub(crate) struct Guard<'a>(&'a RobustMutex);

impl RobustMutex {
    /// Makes the mutex usable; only by the creator of the state file, before others see it.
    pub(crate) fn initialise(&self) -> std::io::Result<()> {
        let mut attribute = std::mem::MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let raw = attribute.as_mut_ptr();
        // SAFETY: `raw` points to room for an attribute object.
        check(unsafe { libc::pthread_mutexattr_init(raw) })?;
        // SAFETY: initialised by the call before.
        check(unsafe { libc::pthread_mutexattr_setpshared(raw, libc::PTHREAD_PROCESS_SHARED) })?;
        // SAFETY: initialised by the first call.
        check(unsafe { libc::pthread_mutexattr_setrobust(raw, libc::PTHREAD_MUTEX_ROBUST) })?;
        // SAFETY: the mutex is in the mapping, aligned, and not in use yet (caller's duty).
        check(unsafe { libc::pthread_mutex_init(self.0.get(), raw) })
    }

    /// Waits for the mutex.
    pub(crate) fn lock(&self) -> Guard<'_> {
        // SAFETY: initialised before the state file became visible under its name.
        let code = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        self.adopt(code);
        Guard(self)
    }

    /// Takes the mutex if it is free.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_>> {
        // SAFETY: as in `lock`.
        let code = unsafe { libc::pthread_mutex_trylock(self.0.get()) };
        if code != 0 && code != libc::EOWNERDEAD {
            return None;
        }
        self.adopt(code);
        Some(Guard(self))
    }

    fn adopt(&self, code: i32) {
        if code == libc::EOWNERDEAD {
            // SAFETY: this thread holds the mutex, whose owner died.
            unsafe { libc::pthread_mutex_consistent(self.0.get()) };
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: a guard exists only while this thread holds the mutex.
        unsafe { libc::pthread_mutex_unlock(self.0.0.get()) };
    }
}

fn check(code: i32) -> std::io::Result<()> {
    if code == 0 {
        Ok(())
    } else {
        Err(std::io::Error::from_raw_os_error(code))
    }
}

/// The state in a mapping. The mapping must be of a file of at least `size_of::<State>()` bytes.
pub(crate) fn state(map: &MmapRaw) -> &State {
    debug_assert!(map.len() >= size_of::<State>());
    // SAFETY: page-aligned, long enough (checked when mapped), valid for any bytes (atomics and a
    // mutex that its creator initialised), shared only through atomics, alive as long as `map`.
    unsafe { &*map.as_ptr().cast::<State>() }
}

/// Path of the object (library or program) that contains `address`.
pub(crate) fn object_of(address: *const c_void) -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `dladdr` only compares the address with the loaded objects' ranges.
    let found = unsafe { libc::dladdr(address, info.as_mut_ptr()) };
    // SAFETY: zeroed is a valid `Dl_info`, and dladdr has filled it in or left it.
    let info = unsafe { info.assume_init() };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr gives a NUL-terminated name that lives as long as the object.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// Whether `pid` exists, for whatever user.
pub(crate) fn exists(pid: u32) -> bool {
    let Ok(pid) = libc::pid_t::try_from(pid) else {
        return false;
    };
    // SAFETY: signal 0 is never delivered.
    let code = unsafe { libc::kill(pid, 0) };
    code == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}
