//! From the driver's devices to lines of the ledger and of the lease page.
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use aegis_common::abi::lease::LeaseLine;
use aegis_common::abi::ledger::GpuLine;
use aegis_common::abi::{GpuUuid, MAX_GPUS};
use shim_core::lease::Terms;

use crate::hooks::driver;
use crate::sys::state::State;

/// Where an allocation goes.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// Line in the ledger.
    pub(crate) gpu: usize,
    /// Context that will own the block, 0 if none.
    pub(crate) context: u64,
}

/// The current context and its GPU. `None`: the driver does not tell.
pub(crate) fn current(state: &State) -> Option<Place> {
    let context = driver::current_context()?;
    if let Some(gpu) = state.contexts.gpu(context) {
        return Some(Place { gpu, context });
    }
    let gpu = of_device(state, driver::current_device()?)?;
    state.contexts.remember(context, gpu);
    Some(Place { gpu, context })
}

/// A device's line in the ledger; the first look enters it.
pub(crate) fn of_device(state: &State, device: i32) -> Option<usize> {
    let uuid = driver::uuid(device)?;
    let words = words(&uuid);
    let header = state.shared.header()?;
    let _entering = state.gpus.lock();
    let lines = (header.gpu_lines.load(Ordering::Acquire) as usize).min(MAX_GPUS);
    for slot in 0..lines {
        if is(&state.shared.gpu(slot)?.uuid, words) {
            return Some(slot);
        }
    }
    let line: &GpuLine = state.shared.gpu(lines)?;
    for (to, from) in line.uuid.iter().zip(words) {
        to.store(from, Ordering::Relaxed);
    }
    header.gpu_lines.store(lines as u32 + 1, Ordering::Release);
    Some(lines)
}

/// The lease on a GPU. `None`: the daemon does not manage it.
pub(crate) fn lease(state: &State, gpu: usize) -> Option<&'static LeaseLine> {
    state.shared.lease_line(lease_slot(state, gpu)?)
}

/// The place of a GPU's lease.
pub(crate) fn lease_slot(state: &State, gpu: usize) -> Option<usize> {
    let uuid = &state.shared.gpu(gpu)?.uuid;
    let words = [
        uuid[0].load(Ordering::Relaxed),
        uuid[1].load(Ordering::Relaxed),
    ];
    // One more than the line's index, so that a wiped page means "not looked up".
    let known = state.lease_lines.get(gpu)?;
    if let Some(slot) = known.load(Ordering::Relaxed).checked_sub(1) {
        let line = state.shared.lease_line(slot as usize)?;
        if is(&line.uuid, words) {
            return Some(slot as usize);
        }
    }
    let slot = lease_slot_of(state, words)?;
    known.store(slot as u32 + 1, Ordering::Relaxed);
    Some(slot)
}

fn lease_slot_of(state: &State, words: [u64; 2]) -> Option<usize> {
    let lines = state.shared.terms()?.lines.load(Ordering::Acquire) as usize;
    (0..lines.min(MAX_GPUS)).find(|slot| {
        let line = state.shared.lease_line(*slot);
        line.is_some_and(|line| is(&line.uuid, words))
    })
}

/// The place of a lease by identity, and the GPU's ledger line if the process has used it.
pub(crate) fn by_uuid(state: &State, uuid: &GpuUuid) -> Option<(usize, Option<&'static GpuLine>)> {
    let words = words(uuid);
    let line = (0..MAX_GPUS)
        .filter_map(|slot| state.shared.gpu(slot))
        .find(|line| is(&line.uuid, words));
    Some((lease_slot_of(state, words)?, line))
}

/// A lease line's terms at this moment.
pub(crate) fn terms(line: &LeaseLine) -> Terms {
    Terms {
        limit: line.limit.load(Ordering::SeqCst),
        flags: line.flags.load(Ordering::Relaxed),
    }
}

/// A GPU's identity as in its ledger line.
pub(crate) fn uuid(line: &GpuLine) -> GpuUuid {
    let mut uuid = [0; 16];
    for (to, from) in uuid.chunks_exact_mut(8).zip(&line.uuid) {
        to.copy_from_slice(&from.load(Ordering::Relaxed).to_ne_bytes());
    }
    uuid
}

fn words(uuid: &GpuUuid) -> [u64; 2] {
    let mut words = [0; 2];
    for (word, bytes) in words.iter_mut().zip(uuid.chunks_exact(8)) {
        *word = bytes.try_into().map_or(0, u64::from_ne_bytes);
    }
    words
}

fn is(uuid: &[AtomicU64; 2], words: [u64; 2]) -> bool {
    uuid.iter()
        .zip(words)
        .all(|(word, wanted)| word.load(Ordering::Relaxed) == wanted)
}
