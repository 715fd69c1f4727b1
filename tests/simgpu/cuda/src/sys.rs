//! Memory mapping and copying, the unsafe part below the heap.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Set in a child after fork: CUDA does not survive it.
pub(crate) static FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn in_child() {
    FORKED.store(true, Relaxed);
}

/// Has children of this process marked.
pub(crate) fn watch_forks() {
    // SAFETY: the handler only stores to an atomic.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

/// How a range is mapped.
#[derive(Clone, Copy)]
pub(crate) enum Backing {
    /// Address space only.
    Nothing,
    /// Zeroed memory that costs nothing until written.
    Memory,
    /// Part of a file, at an offset.
    File { descriptor: i32, offset: u64 },
}

/// Maps `[base, base + length)`, where nothing but an own mapping is (`replace`) or nothing at all.
/// False if the system refuses.
pub(crate) fn map(base: u64, length: u64, backing: Backing, replace: bool) -> bool {
    let place = if replace {
        libc::MAP_FIXED
    } else {
        libc::MAP_FIXED_NOREPLACE
    };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let (access, flags, descriptor, offset) = match backing {
        Backing::Nothing => (
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        ),
        Backing::Memory => (access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
        Backing::File { descriptor, offset } => (access, libc::MAP_SHARED, descriptor, offset),
    };
    let address = ptr::without_provenance_mut::<c_void>(base as usize);
    let flags = flags | place | libc::MAP_NORESERVE;
    // SAFETY: NOREPLACE touches no mapping; replacing is done only inside ranges of the arena that
    // this library mapped itself (heap invariant).
    let got = unsafe {
        libc::mmap(
            address,
            length as usize,
            access,
            flags,
            descriptor,
            offset as i64,
        )
    };
    if got == libc::MAP_FAILED {
        return false;
    }
    if got != address {
        // A kernel that does not know NOREPLACE took the address as a hint.
        unmap(got as u64, length);
        return false;
    }
    // SAFETY: just mapped by this call. A forked child must not pay for, or see, device memory.
    unsafe { libc::madvise(address, length as usize, libc::MADV_DONTFORK) };
    true
}

/// Unmaps an own range.
pub(crate) fn unmap(base: u64, length: u64) {
    let address = ptr::without_provenance_mut::<c_void>(base as usize);
    // SAFETY: the range was mapped by `map` and is forgotten by the heap (heap invariant).
    unsafe { libc::munmap(address, length as usize) };
}

/// A file in memory that backs physical handles.
pub(crate) fn memory_file() -> Option<i32> {
    // SAFETY: the name is a NUL-terminated constant.
    let descriptor = unsafe { libc::memfd_create(c"simgpu-physical".as_ptr(), libc::MFD_CLOEXEC) };
    (descriptor >= 0).then_some(descriptor)
}

/// Grows the file to `length`.
pub(crate) fn grow_file(descriptor: i32, length: u64) -> bool {
    // SAFETY: plain system call on an own descriptor.
    unsafe { libc::ftruncate(descriptor, length as i64) == 0 }
}

/// Gives the memory of a part of the file back; it reads as zeros again.
pub(crate) fn punch(descriptor: i32, offset: u64, length: u64) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: plain system call on an own descriptor.
    unsafe { libc::fallocate(descriptor, mode, offset as i64, length as i64) };
}

/// Copies like memmove.
pub(crate) fn copy(to: u64, from: u64, bytes: usize) {
    let to = ptr::with_exposed_provenance_mut::<u8>(to as usize);
    let from = ptr::with_exposed_provenance::<u8>(from as usize);
    // SAFETY: device sides were checked against the heap by the caller; host sides are valid by the
    // contract of the CUDA copy functions.
    unsafe { ptr::copy(from, to, bytes) };
}

/// Fills `count` elements of `width` bytes.
pub(crate) fn fill(to: u64, value: u32, width: usize, count: usize) {
    let address = ptr::with_exposed_provenance_mut::<u8>(to as usize);
    match width {
        // SAFETY: the caller checked the range against the heap.
        1 => unsafe { ptr::write_bytes(address, value as u8, count) },
        2 => fill_with(address.cast::<u16>(), value as u16, count),
        _ => fill_with(address.cast::<u32>(), value, count),
    }
}

fn fill_with<T: Copy>(address: *mut T, value: T, count: usize) {
    // SAFETY: the caller of `fill` checked range and alignment.
    let elements = unsafe { std::slice::from_raw_parts_mut(address, count) };
    elements.fill(value);
}

/// Makes whole pages inside `[base, base + length)` of anonymous memory read as zeros again,
/// without touching them; the edges are written.
pub(crate) fn zero(base: u64, length: u64) {
    const PAGE: u64 = 4096;
    let first = base.next_multiple_of(PAGE);
    let last = (base + length) / PAGE * PAGE;
    if last <= first {
        return fill(base, 0, 1, length as usize);
    }
    fill(base, 0, 1, (first - base) as usize);
    fill(last, 0, 1, (base + length - last) as usize);
    let address = ptr::without_provenance_mut::<c_void>(first as usize);
    // SAFETY: whole pages of an own private anonymous mapping, checked by the caller.
    let code = unsafe { libc::madvise(address, (last - first) as usize, libc::MADV_DONTNEED) };
    if code != 0 {
        fill(first, 0, 1, (last - first) as usize);
    }
}

/// Page-aligned host memory; 0 if there is none.
pub(crate) fn allocate_host(bytes: usize) -> u64 {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping anywhere.
    let got = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
    if got == libc::MAP_FAILED {
        0
    } else {
        got.expose_provenance() as u64
    }
}

/// Calls a host function of the application.
pub(crate) fn call_host(function: extern "C" fn(*mut c_void), data: usize) {
    function(ptr::with_exposed_provenance_mut(data));
}
