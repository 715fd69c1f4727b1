//! A ledger's bytes as numbers. Nothing here is believed yet; see [`super::sanitise()`].

use std::mem::offset_of;

use aegis_common::abi::ledger::{
    BYPASSES, GPU_LINES_OFFSET, GpuLine, KIND_SLOTS, LAUNCH_LINES, LAUNCH_LINES_OFFSET,
    LEDGER_BYTES, LaunchLine, LedgerHeader,
};
use aegis_common::abi::trace::TRACES;
use aegis_common::abi::{ABI_MAJOR, GpuUuid, MAGIC, MAX_GPUS};

/// Why a ledger could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The kernel refused.
    #[error("the ledger cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// It is not [`LEDGER_BYTES`] long.
    #[error("the ledger has {0} bytes instead of {LEDGER_BYTES}")]
    Size(u64),
    /// It ended while it was read.
    #[error("the ledger was cut while it was read: {0} of {LEDGER_BYTES} bytes")]
    Torn(usize),
    /// It does not begin with the magic number.
    #[error("not a ledger: magic {0:#018x}")]
    Magic(u64),
    /// Its header names another size.
    #[error("the ledger's header says {0} bytes instead of {LEDGER_BYTES}")]
    HeaderSize(u32),
    /// It has another layout.
    #[error("the ledger has ABI version {0}, this daemon reads {ABI_MAJOR}")]
    Version(u32),
    /// Anybody could shorten it under a reader's feet.
    #[error("not a ledger of this daemon: its memory is not sealed")]
    Unsealed,
}

/// A process's ledger at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerSnapshot {
    /// `CLOCK_MONOTONIC` nanoseconds of the first launch; 0 before it.
    pub first_launch_ns: u64,
    /// Non-zero while a stream capture is open in the process.
    pub captures_open: u32,
    /// Lookups of names the hook table does not know.
    pub unknown_lookups: u64,
    /// Pass-throughs by [`aegis_common::abi::ledger::Bypass`].
    pub bypass: [u64; BYPASSES],
    /// Launches of all threads, by kind.
    pub launches: Launches,
    /// Launches of kernels and graphs by threads without a trace.
    pub untraced: u64,
    /// GPUs in use, in the order of their first use.
    pub gpus: Vec<LedgerGpuSnapshot>,
    /// What is wrong with the ledger, in words. Filled by [`super::sanitise()`].
    pub warnings: Vec<String>,
}

/// Launches of a process since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Launches {
    /// Kernels.
    pub kernels: u64,
    /// Graphs.
    pub graphs: u64,
    /// Copies.
    pub copies: u64,
    /// Memsets.
    pub memsets: u64,
    /// Host functions.
    pub host_functions: u64,
}

impl Launches {
    /// All kinds together: the measure of [`LedgerGpuSnapshot::launches_at_refusal`].
    #[must_use]
    pub fn total(&self) -> u64 {
        [
            self.kernels,
            self.graphs,
            self.copies,
            self.memsets,
            self.host_functions,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }
}

/// A process's account on one GPU. All sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerGpuSnapshot {
    /// The GPU.
    pub uuid: GpuUuid,
    /// Held now, by [`aegis_common::abi::ledger::Kind`] (slots beyond the known kinds belong to
    /// newer shims).
    pub kinds: [u64; KIND_SLOTS],
    /// Held now in all; after [`super::sanitise()`] never less than NVML proves.
    pub used: u64,
    /// Highest `used` so far.
    pub peak: u64,
    /// Asked of the driver and not yet answered.
    pub inflight: u64,
    /// Allocations that succeeded.
    pub allocs: u64,
    /// Blocks given back.
    pub frees: u64,
    /// Allocations the driver refused.
    pub driver_ooms: u64,
    /// Allocations the shim refused.
    pub denials: u64,
    /// Runs of refusals.
    pub episodes: u64,
    /// First refused request of the current or last episode.
    pub episode_bytes: u64,
    /// `CLOCK_MONOTONIC` nanoseconds of the last refusal.
    pub last_refusal_ns: u64,
    /// The process's launches when the last refusal was answered.
    pub launches_at_refusal: u64,
    /// Non-zero while the episode is unrecovered.
    pub unrecovered: u64,
}

impl LedgerSnapshot {
    /// The account on that GPU.
    #[must_use]
    pub fn gpu(&self, uuid: &GpuUuid) -> Option<&LedgerGpuSnapshot> {
        self.gpus.iter().find(|gpu| gpu.uuid == *uuid)
    }

    /// Bytes of the last refused request there, if it was never recovered from and nothing was
    /// launched since (contract C5).
    #[must_use]
    pub fn open_refusal(&self, uuid: &GpuUuid) -> Option<u64> {
        let gpu = self.gpu(uuid)?;
        let launched_since = self.launches.total() > gpu.launches_at_refusal;
        (gpu.unrecovered != 0 && !launched_since).then_some(gpu.episode_bytes)
    }

    /// Reads a ledger's bytes. Every other content than a ledger's gives an error, none a panic.
    ///
    /// # Errors
    ///
    /// All but [`LedgerError::Io`] and [`LedgerError::Unsealed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, LedgerError> {
        if bytes.len() != LEDGER_BYTES {
            return Err(LedgerError::Size(bytes.len() as u64));
        }
        let magic = u64_at(bytes, offset_of!(LedgerHeader, magic));
        if magic != MAGIC {
            return Err(LedgerError::Magic(magic));
        }
        let version = u32_at(bytes, offset_of!(LedgerHeader, abi_major));
        if version != ABI_MAJOR {
            return Err(LedgerError::Version(version));
        }
        let size = u32_at(bytes, offset_of!(LedgerHeader, size));
        if size as usize != LEDGER_BYTES {
            return Err(LedgerError::HeaderSize(size));
        }
        let bypass_at = offset_of!(LedgerHeader, bypass);
        let mut snapshot = Self {
            first_launch_ns: u64_at(bytes, offset_of!(LedgerHeader, first_launch_ns)),
            captures_open: u32_at(bytes, offset_of!(LedgerHeader, captures_open)),
            unknown_lookups: u64_at(bytes, offset_of!(LedgerHeader, unknown_lookups)),
            bypass: std::array::from_fn(|i| u64_at(bytes, bypass_at + i * 8)),
            launches: Launches::default(),
            untraced: 0,
            gpus: Vec::new(),
            warnings: Vec::new(),
        };
        for line in 0..LAUNCH_LINES {
            let at = LAUNCH_LINES_OFFSET + line * size_of::<LaunchLine>();
            snapshot.launches.add(bytes, at);
            if line >= TRACES {
                let mut launches = Launches::default();
                launches.add(bytes, at);
                snapshot.untraced = snapshot
                    .untraced
                    .saturating_add(launches.kernels)
                    .saturating_add(launches.graphs);
            }
        }
        let lines = u32_at(bytes, offset_of!(LedgerHeader, gpu_lines)) as usize;
        for line in 0..lines.min(MAX_GPUS) {
            let at = GPU_LINES_OFFSET + line * size_of::<GpuLine>();
            let gpu = LedgerGpuSnapshot::decode(bytes, at);
            // The UUID is written before the line is counted: without one the line means nothing.
            if gpu.uuid != GpuUuid::default() {
                snapshot.merge(gpu);
            }
        }
        Ok(snapshot)
    }

    /// Two lines of one GPU count together, so that splitting an account hides nothing.
    fn merge(&mut self, gpu: LedgerGpuSnapshot) {
        let Some(known) = self.gpus.iter_mut().find(|known| known.uuid == gpu.uuid) else {
            return self.gpus.push(gpu);
        };
        for (sum, bytes) in known.kinds.iter_mut().zip(gpu.kinds) {
            *sum = sum.saturating_add(bytes);
        }
        for (sum, value) in [
            (&mut known.used, gpu.used),
            (&mut known.peak, gpu.peak),
            (&mut known.inflight, gpu.inflight),
            (&mut known.allocs, gpu.allocs),
            (&mut known.frees, gpu.frees),
            (&mut known.driver_ooms, gpu.driver_ooms),
            (&mut known.denials, gpu.denials),
            (&mut known.episodes, gpu.episodes),
        ] {
            *sum = sum.saturating_add(value);
        }
    }
}

impl Launches {
    fn add(&mut self, bytes: &[u8], at: usize) {
        for (sum, offset) in [
            (&mut self.kernels, offset_of!(LaunchLine, kernels)),
            (&mut self.graphs, offset_of!(LaunchLine, graphs)),
            (&mut self.copies, offset_of!(LaunchLine, copies)),
            (&mut self.memsets, offset_of!(LaunchLine, memsets)),
            (
                &mut self.host_functions,
                offset_of!(LaunchLine, host_functions),
            ),
        ] {
            *sum = sum.saturating_add(u64_at(bytes, at + offset));
        }
    }
}

impl LedgerGpuSnapshot {
    fn decode(bytes: &[u8], at: usize) -> Self {
        let field = |offset: usize| u64_at(bytes, at + offset);
        let used_at = offset_of!(GpuLine, used);
        let kinds: [u64; KIND_SLOTS] = std::array::from_fn(|kind| field(used_at + kind * 8));
        Self {
            uuid: take(bytes, at + offset_of!(GpuLine, uuid)),
            kinds,
            used: kinds.into_iter().fold(0, u64::saturating_add),
            peak: field(offset_of!(GpuLine, peak)),
            inflight: field(offset_of!(GpuLine, inflight)),
            allocs: field(offset_of!(GpuLine, allocs)),
            frees: field(offset_of!(GpuLine, frees)),
            driver_ooms: field(offset_of!(GpuLine, driver_ooms)),
            denials: field(offset_of!(GpuLine, denials)),
            episodes: field(offset_of!(GpuLine, episodes)),
            episode_bytes: field(offset_of!(GpuLine, episode_bytes)),
            last_refusal_ns: field(offset_of!(GpuLine, last_refusal_ns)),
            launches_at_refusal: field(offset_of!(GpuLine, launches_at_refusal)),
            unrecovered: field(offset_of!(GpuLine, unrecovered)),
        }
    }
}

/// `N` bytes from `at`; zeros where there are none.
pub(super) fn take<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut value = [0; N];
    for (slot, byte) in value.iter_mut().zip(bytes.iter().skip(at)) {
        *slot = *byte;
    }
    value
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(take(bytes, at))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(take(bytes, at))
}
