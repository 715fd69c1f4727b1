//! The two pages shared with the daemon: the ledger, written here, and the lease, read here.

use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use aegis_common::abi::lease::{LEASE_BYTES, LEASE_LINES_OFFSET, LeaseHeader, LeaseLine};
use aegis_common::abi::ledger::{
    GPU_LINES_OFFSET, GpuLine, LAUNCH_LINES, LAUNCH_LINES_OFFSET, LEDGER_BYTES, LaunchLine,
    LedgerHeader,
};
use aegis_common::abi::trace::{
    TRACED_LEDGER_BYTES, TRACES, TRACES_OFFSET, TRACES_SINCE_MINOR, Trace,
};
use aegis_common::abi::{ABI_MAJOR, MAGIC, MAX_GPUS};
use shim_core::sys::syscall;

/// Addresses of the mappings; null while there are none. Both stay mapped for good.
pub(crate) struct Shared {
    ledger: AtomicPtr<u8>,
    lease: AtomicPtr<u8>,
    /// Traces in the ledger's mapping: none from a daemon that is older than they are.
    traces: AtomicUsize,
}

impl Shared {
    /// Maps what the daemon sent. `false`: it is not what it should be, and nothing is used.
    pub(crate) fn map(&self, ledger: i32, lease: i32) -> bool {
        const PROT_READ: i32 = 1;
        const PROT_READ_WRITE: i32 = 3;
        let whole = map(ledger, TRACED_LEDGER_BYTES, PROT_READ_WRITE);
        let traced = whole.is_some();
        let Some(ledger) = whole.or_else(|| map(ledger, LEDGER_BYTES, PROT_READ_WRITE)) else {
            return false;
        };
        let ledger_bytes = if traced {
            TRACED_LEDGER_BYTES
        } else {
            LEDGER_BYTES
        };
        let Some(lease) = map(lease, LEASE_BYTES, PROT_READ) else {
            // SAFETY: mapped above and not used yet.
            unsafe { syscall::munmap(ledger, ledger_bytes) };
            return false;
        };
        // SAFETY: a mapping of at least LEDGER_BYTES, of atomics.
        let header = unsafe { &*ledger.cast::<LedgerHeader>() };
        // SAFETY: a mapping of LEASE_BYTES, of atomics.
        let terms = unsafe { &*lease.cast::<LeaseHeader>() };
        let fits = header.magic.load(Ordering::Relaxed) == MAGIC
            && header.abi_major.load(Ordering::Relaxed) == ABI_MAJOR
            && terms.magic.load(Ordering::Relaxed) == MAGIC
            && terms.abi_major.load(Ordering::Relaxed) == ABI_MAJOR;
        if fits {
            let traced = traced && header.abi_minor.load(Ordering::Relaxed) >= TRACES_SINCE_MINOR;
            let traces = if traced { TRACES } else { 0 };
            self.traces.store(traces, Ordering::Relaxed);
            self.lease.store(lease, Ordering::Relaxed);
            self.ledger.store(ledger, Ordering::Release);
        } else {
            // SAFETY: mapped above and not used by anyone.
            unsafe { syscall::munmap(ledger, ledger_bytes) };
            // SAFETY: as above.
            unsafe { syscall::munmap(lease, LEASE_BYTES) };
        }
        fits
    }

    /// The ledger's header.
    pub(crate) fn header(&self) -> Option<&'static LedgerHeader> {
        let ledger = self.ledger.load(Ordering::Acquire);
        // SAFETY: null or a ledger mapping that is never unmapped.
        unsafe { ledger.cast::<LedgerHeader>().as_ref() }
    }

    /// A GPU's line in the ledger.
    pub(crate) fn gpu(&self, slot: usize) -> Option<&'static GpuLine> {
        if slot >= MAX_GPUS {
            return None;
        }
        let line = self.part::<GpuLine>(&self.ledger, GPU_LINES_OFFSET, slot)?;
        // SAFETY: within the ledger mapping, which is never unmapped.
        Some(unsafe { &*line })
    }

    /// A thread's line in the ledger.
    pub(crate) fn launch_line(&self, slot: usize) -> Option<&'static LaunchLine> {
        if slot >= LAUNCH_LINES {
            return None;
        }
        let line = self.part::<LaunchLine>(&self.ledger, LAUNCH_LINES_OFFSET, slot)?;
        // SAFETY: within the ledger mapping, which is never unmapped.
        Some(unsafe { &*line })
    }

    /// A thread's trace in the ledger.
    pub(crate) fn trace(&self, slot: usize) -> Option<&'static Trace> {
        let trace = self.part::<Trace>(&self.ledger, TRACES_OFFSET, slot)?;
        // Read after the ledger's address, with which it was published.
        if slot >= self.traces.load(Ordering::Relaxed) {
            return None;
        }
        // SAFETY: within the ledger mapping, which is never unmapped.
        Some(unsafe { &*trace })
    }

    /// The lease page's header.
    pub(crate) fn terms(&self) -> Option<&'static LeaseHeader> {
        let lease = self.lease.load(Ordering::Acquire);
        // SAFETY: null or a lease mapping that is never unmapped.
        unsafe { lease.cast::<LeaseHeader>().as_ref() }
    }

    /// A line of the lease page.
    pub(crate) fn lease_line(&self, slot: usize) -> Option<&'static LeaseLine> {
        if slot >= MAX_GPUS {
            return None;
        }
        let line = self.part::<LeaseLine>(&self.lease, LEASE_LINES_OFFSET, slot)?;
        // SAFETY: within the lease mapping, which is never unmapped.
        Some(unsafe { &*line })
    }

    #[expect(
        clippy::unused_self,
        reason = "keeps the mapping's owner in sight at the calls"
    )]
    fn part<T>(&self, mapping: &AtomicPtr<u8>, offset: usize, slot: usize) -> Option<*const T> {
        let start = mapping.load(Ordering::Acquire);
        if start.is_null() {
            return None;
        }
        Some(start.wrapping_add(offset + slot * size_of::<T>()).cast())
    }
}

fn map(fd: i32, bytes: usize, protection: i32) -> Option<*mut u8> {
    const MAP_SHARED: i32 = 1;
    const MADV_DONTFORK: i32 = 10;
    // A shorter file would end the process with SIGBUS at the first access.
    if fd < 0 || syscall::file_size(fd).ok()? < bytes as u64 {
        return None;
    }
    // SAFETY: a new mapping; the lease is only read, as it is mapped.
    let address = unsafe { syscall::mmap(bytes, protection, MAP_SHARED, fd) }.ok()?;
    // A child must never write its parent's ledger.
    // SAFETY: our own fresh mapping.
    if unsafe { syscall::madvise(address, bytes, MADV_DONTFORK) }.is_err() {
        // SAFETY: nobody has seen the mapping.
        unsafe { syscall::munmap(address, bytes) };
        return None;
    }
    Some(address)
}
