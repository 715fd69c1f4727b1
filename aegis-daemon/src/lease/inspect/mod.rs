//! The shared-memory inspector: ledgers and lease pages as users see them.

mod offline;

use aegis_common::abi::GpuUuid;
use aegis_common::abi::lease::UNLIMITED;
use aegis_common::abi::ledger::{BYPASS_NAMES, KIND_NAMES};
use aegis_common::id::GpuIndex;
use aegis_common::wire::{KindBytes, LedgerGpu, LedgerView, PaceView};

use super::name::LeaseName;
use super::page::LeaseLineView;
use super::sanitise::Proof;
use super::snapshot::LedgerSnapshot;
use super::{process, uuid};

pub use offline::{held_ledgers, offline};

/// What the owner knows about a process beside its ledger.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Whose ledger it is.
    pub name: LeaseName,
    /// Its lease lines.
    pub lease: &'a [LeaseLineView],
    /// What NVML attributes to it.
    pub nvml: &'a [Proof],
    /// Milliseconds since its launches last increased, if they were seen to.
    pub idle_ms: Option<u64>,
    /// How fast it repeats its launch sequence, if that is known.
    pub pace: Option<PaceView>,
}

/// A process's ledger and lease for display. GPUs of the lease come first, by line, then others of
/// the ledger.
#[must_use]
pub fn view(
    ledger: &LedgerSnapshot,
    context: &Context<'_>,
    index_of: impl Fn(&GpuUuid) -> Option<GpuIndex>,
) -> LedgerView {
    let leased = context.lease.iter().map(|line| line.uuid);
    let charged = ledger.gpus.iter().map(|gpu| gpu.uuid);
    let mut uuids: Vec<GpuUuid> = Vec::new();
    for uuid in leased.chain(charged) {
        if !uuids.contains(&uuid) {
            uuids.push(uuid);
        }
    }
    let gpu = |uuid: &GpuUuid| gpu_view(uuid, ledger, context, index_of(uuid));
    let bypasses = BYPASS_NAMES.iter().zip(ledger.bypass);
    let alive = process::is_alive(context.name.process);
    LedgerView {
        job: Some(context.name.job),
        process: context.name.process,
        // Of a dead process the pid may already be another's.
        command: alive
            .then(|| process::command(context.name.process.pid))
            .flatten(),
        alive,
        kernels: ledger.launches.kernels,
        graphs: ledger.launches.graphs,
        copies: ledger.launches.copies,
        memsets: ledger.launches.memsets,
        idle_ms: context.idle_ms,
        launched: ledger.first_launch_ns != 0,
        unknown_lookups: ledger.unknown_lookups,
        bypasses: bypasses
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| ((*name).to_owned(), count))
            .collect(),
        captures_open: ledger.captures_open,
        gpus: uuids.iter().map(gpu).collect(),
        pace: context.pace,
        warning: (!ledger.warnings.is_empty()).then(|| ledger.warnings.join("; ")),
    }
}

fn gpu_view(
    uuid: &GpuUuid,
    ledger: &LedgerSnapshot,
    context: &Context<'_>,
    index: Option<GpuIndex>,
) -> LedgerGpu {
    let gpu = ledger.gpu(uuid).copied().unwrap_or_default();
    let line = context.lease.iter().find(|line| line.uuid == *uuid);
    let proof = context.nvml.iter().find(|proof| proof.uuid == *uuid);
    let named = KIND_NAMES.iter().copied().chain(std::iter::repeat("other"));
    LedgerGpu {
        gpu: index,
        uuid: uuid::format(uuid),
        kinds: named
            .zip(gpu.kinds)
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(kind, bytes)| KindBytes {
                kind: kind.to_owned(),
                bytes,
            })
            .collect(),
        used: gpu.used,
        peak: gpu.peak,
        inflight: gpu.inflight,
        limit: line
            .map(|line| line.limit)
            .filter(|limit| *limit != UNLIMITED),
        nvml: proof.map(|proof| proof.bytes),
        allocs: gpu.allocs,
        frees: gpu.frees,
        denials: gpu.denials,
        driver_ooms: gpu.driver_ooms,
        episodes: gpu.episodes,
    }
}
