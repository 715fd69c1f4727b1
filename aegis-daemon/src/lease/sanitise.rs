//! Making a hostile ledger harmless (invariant 2).
//!
//! A process can write anything into its own ledger. What may come of that: wrong numbers about
//! itself, never above what the GPU has, never below what NVML proves, and a warning.

use aegis_common::abi::GpuUuid;
use aegis_common::abi::ledger::Kind;

use super::snapshot::{LedgerGpuSnapshot, LedgerSnapshot};
use super::uuid;

/// Most a GPU could plausibly hold whose capacity is not known: 16 TiB.
const CAPACITY_UNKNOWN: u64 = 1 << 44;

/// What NVML attributes to the process on one GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The GPU.
    pub uuid: GpuUuid,
    /// Bytes, context and modules included.
    pub bytes: u64,
}

/// Replaces what cannot be true in `now` and says so in its `warnings`.
///
/// * Sums saturate; `used + inflight` and `peak` never exceed the GPU's capacity.
/// * A counter below its value in `previous` (the last sanitised snapshot) keeps that value.
/// * Where NVML proves more than `used` plus `context_allowance` bytes (contexts and modules, which
///   no call shows), `used` becomes what it proves less the allowance, even on GPUs the ledger does
///   not name.
#[must_use]
pub fn sanitise(
    previous: Option<&LedgerSnapshot>,
    mut now: LedgerSnapshot,
    capacity_of: impl Fn(&GpuUuid) -> Option<u64>,
    nvml: &[Proof],
    context_allowance: u64,
) -> LedgerSnapshot {
    let mut warnings = Vec::new();
    if let Some(previous) = previous {
        keep_counters(previous, &mut now, &capacity_of, &mut warnings);
    }
    for proof in nvml {
        if now.gpu(&proof.uuid).is_none() && proof.bytes > context_allowance {
            now.gpus.push(LedgerGpuSnapshot {
                uuid: proof.uuid,
                ..LedgerGpuSnapshot::default()
            });
        }
    }
    for gpu in &mut now.gpus {
        let capacity = capacity_of(&gpu.uuid);
        let proof = nvml.iter().find(|proof| proof.uuid == gpu.uuid);
        clamp(gpu, capacity, &mut warnings);
        if let Some(proof) = proof {
            believe(gpu, proof.bytes, context_allowance, capacity, &mut warnings);
        }
    }
    now.warnings = warnings;
    now
}

fn keep_counters(
    previous: &LedgerSnapshot,
    now: &mut LedgerSnapshot,
    capacity_of: impl Fn(&GpuUuid) -> Option<u64>,
    warnings: &mut Vec<String>,
) {
    let mut fell = Vec::new();
    let mut keep = |name: &'static str, before: u64, value: &mut u64| {
        if *value < before {
            *value = before;
            if !fell.contains(&name) {
                fell.push(name);
            }
        }
    };
    keep(
        "unknown_lookups",
        previous.unknown_lookups,
        &mut now.unknown_lookups,
    );
    for (before, value) in previous.bypass.iter().zip(&mut now.bypass) {
        keep("bypass", *before, value);
    }
    let (before, after) = (&previous.launches, &mut now.launches);
    keep("kernels", before.kernels, &mut after.kernels);
    keep("graphs", before.graphs, &mut after.graphs);
    keep("copies", before.copies, &mut after.copies);
    keep("memsets", before.memsets, &mut after.memsets);
    keep(
        "host_functions",
        before.host_functions,
        &mut after.host_functions,
    );
    for before in &previous.gpus {
        let position = now.gpus.iter().position(|gpu| gpu.uuid == before.uuid);
        // Invented GPUs are forgotten, or a process that names new ones each time would fill the
        // daemon's memory.
        if position.is_none() && capacity_of(&before.uuid).is_none() {
            continue;
        }
        let at = position.unwrap_or_else(|| {
            now.gpus.push(LedgerGpuSnapshot {
                uuid: before.uuid,
                ..LedgerGpuSnapshot::default()
            });
            now.gpus.len() - 1
        });
        let Some(gpu) = now.gpus.get_mut(at) else {
            continue;
        };
        keep("peak", before.peak, &mut gpu.peak);
        keep("allocs", before.allocs, &mut gpu.allocs);
        keep("frees", before.frees, &mut gpu.frees);
        keep("driver_ooms", before.driver_ooms, &mut gpu.driver_ooms);
        keep("denials", before.denials, &mut gpu.denials);
        keep("episodes", before.episodes, &mut gpu.episodes);
    }
    // The moment of the first launch is written once.
    if previous.first_launch_ns != 0 && now.first_launch_ns != previous.first_launch_ns {
        now.first_launch_ns = previous.first_launch_ns;
        fell.push("first_launch_ns");
    }
    if !fell.is_empty() {
        warnings.push(format!(
            "counters that only grow went backwards: {}",
            fell.join(", ")
        ));
    }
}

fn clamp(gpu: &mut LedgerGpuSnapshot, capacity: Option<u64>, warnings: &mut Vec<String>) {
    if capacity.is_none() {
        warnings.push(format!("unknown GPU {}", uuid::format(&gpu.uuid)));
    }
    let capacity = capacity.unwrap_or(CAPACITY_UNKNOWN);
    let managed = gpu.kinds.get(Kind::Managed as usize).copied().unwrap_or(0);
    // Managed memory may legitimately exceed the GPU: its pages move.
    if gpu.used.saturating_sub(managed) > capacity {
        warnings.push(format!(
            "claims {} bytes on {}, which has {capacity}",
            gpu.used,
            uuid::format(&gpu.uuid)
        ));
    }
    gpu.used = gpu.used.min(capacity);
    for bytes in &mut gpu.kinds {
        *bytes = (*bytes).min(capacity);
    }
    // A request larger than the GPU is in flight until the driver has refused it: no lie.
    gpu.inflight = gpu.inflight.min(capacity - gpu.used);
    // `peak` is raised after `used`: a reader may come between.
    gpu.peak = gpu.peak.clamp(gpu.used, capacity);
}

fn believe(
    gpu: &mut LedgerGpuSnapshot,
    proven: u64,
    allowance: u64,
    capacity: Option<u64>,
    warnings: &mut Vec<String>,
) {
    let capacity = capacity.unwrap_or(CAPACITY_UNKNOWN);
    let least = proven.saturating_sub(allowance).min(capacity);
    if gpu.used >= least {
        return;
    }
    warnings.push(format!(
        "claims {} bytes on {} while NVML shows {proven}; counted as {least}",
        gpu.used,
        uuid::format(&gpu.uuid)
    ));
    gpu.used = least;
    gpu.inflight = gpu.inflight.min(capacity - least);
    gpu.peak = gpu.peak.max(least);
}
