//! Memory mapped from the kernel, seen as a slice.

use core::marker::PhantomData;
use core::mem::size_of;
use core::ops::{Deref, DerefMut};

use super::syscall;

const PROT_READ_WRITE: i32 = 1 | 2;
const MAP_PRIVATE_ANONYMOUS: i32 = 0x02 | 0x20;
/// The mapping is absent in a forked child.
const MADV_DONTFORK: i32 = 10;

/// Types for which all-zero bytes are a value.
///
/// # Safety
/// Zeroed memory must be a valid value of the type, and dropping one must do nothing.
pub unsafe trait Zeroable: Copy {}

// SAFETY: a number.
unsafe impl Zeroable for u64 {}

/// A zero-initialised slice in pages of its own. A forked child does not inherit it.
pub struct MappedSlice<T: Zeroable> {
    address: *mut u8,
    length: usize,
    items: PhantomData<T>,
}

// SAFETY: the mapping is owned like a `Vec<T>`'s buffer.
unsafe impl<T: Zeroable + Send> Send for MappedSlice<T> {}
// SAFETY: as above; shared access only reads.
unsafe impl<T: Zeroable + Sync> Sync for MappedSlice<T> {}

impl<T: Zeroable> MappedSlice<T> {
    /// A slice without memory.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            address: core::ptr::null_mut(),
            length: 0,
            items: PhantomData,
        }
    }

    /// `length` zeroed items; `None` if the kernel gives no memory.
    #[must_use]
    pub fn zeroed(length: usize) -> Option<Self> {
        let bytes = length
            .checked_mul(size_of::<T>())
            .filter(|bytes| *bytes > 0)?;
        // SAFETY: anonymous memory, owned by the value that is returned.
        let address = unsafe { syscall::mmap(bytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1) };
        let address = address.ok()?;
        // SAFETY: our own fresh mapping. A failure only costs a child some memory.
        let _ = unsafe { syscall::madvise(address, bytes, MADV_DONTFORK) };
        Some(Self {
            address,
            length,
            items: PhantomData,
        })
    }
}

impl<T: Zeroable> Deref for MappedSlice<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: `length` initialised items (zero is a value of T), page-aligned, owned by self.
        unsafe { core::slice::from_raw_parts(self.address.cast::<T>(), self.length) }
    }
}

impl<T: Zeroable> DerefMut for MappedSlice<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.length == 0 {
            return &mut [];
        }
        // SAFETY: as in `deref`; `&mut self` makes the access exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.address.cast::<T>(), self.length) }
    }
}

impl<T: Zeroable> Drop for MappedSlice<T> {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: the mapping is ours and no reference outlives the owner.
            unsafe { syscall::munmap(self.address, self.length * size_of::<T>()) };
        }
    }
}
