//! Which GPU a context is on, remembered so that an allocation asks the driver one question, not
//! two.
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Contexts remembered. Processes have one per GPU, seldom more.
const CONTEXTS: usize = 32;
/// Devices whose primary context is remembered.
const DEVICES: usize = 64;

/// Contexts and their GPUs. Zeroed memory: none known.
#[derive(Default)]
pub struct Contexts {
    entries: [Entry; CONTEXTS],
    next: AtomicU32,
    primary: Primary,
}

#[derive(Default)]
struct Entry {
    context: AtomicU64,
    gpu: AtomicU32,
}

struct Primary([AtomicU64; DEVICES]);

impl Default for Primary {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; DEVICES])
    }
}

impl Contexts {
    /// The GPU slot of a context, if it is remembered.
    pub fn gpu(&self, context: u64) -> Option<usize> {
        if context == 0 {
            return None;
        }
        self.entries.iter().find_map(|entry| {
            if entry.context.load(Ordering::Acquire) != context {
                return None;
            }
            let gpu = entry.gpu.load(Ordering::Acquire);
            // Unchanged: the slot belongs to this context and not to a later owner of the entry.
            (entry.context.load(Ordering::Relaxed) == context).then_some(gpu as usize)
        })
    }

    /// Remembers a context; the oldest entry gives way.
    pub fn remember(&self, context: u64, gpu: usize) {
        if context == 0 || self.gpu(context).is_some() {
            return;
        }
        let at = self.next.fetch_add(1, Ordering::Relaxed) as usize % CONTEXTS;
        if let Some(entry) = self.entries.get(at) {
            entry.context.store(0, Ordering::Release);
            entry.gpu.store(gpu as u32, Ordering::Release);
            entry.context.store(context, Ordering::Release);
        }
    }

    /// Forgets a context that ended: its handle may come back on another GPU.
    pub fn forget(&self, context: u64) {
        for entry in &self.entries {
            let _ = entry
                .context
                .compare_exchange(context, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Forgets all contexts.
    pub fn forget_all(&self) {
        for entry in &self.entries {
            entry.context.store(0, Ordering::Release);
        }
    }

    /// Notes the primary context of a device.
    pub fn set_primary(&self, device: i32, context: u64) {
        if let Some(primary) = usize::try_from(device)
            .ok()
            .and_then(|at| self.primary.0.get(at))
        {
            primary.store(context, Ordering::Release);
        }
    }

    /// The primary context of a device, if it was ever handed out.
    pub fn primary(&self, device: i32) -> Option<u64> {
        let primary = usize::try_from(device)
            .ok()
            .and_then(|at| self.primary.0.get(at))?;
        Some(primary.load(Ordering::Acquire)).filter(|context| *context != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_remembered_until_they_end() {
        let contexts = Contexts::default();
        assert_eq!(contexts.gpu(0), None);
        for context in 1..=40 {
            contexts.remember(context, context as usize % 4);
        }
        assert_eq!(contexts.gpu(40), Some(0));
        assert_eq!(contexts.gpu(1), None, "the oldest gave way");
        contexts.forget(40);
        assert_eq!(contexts.gpu(40), None);
        contexts.forget_all();
        assert_eq!(contexts.gpu(39), None);
    }

    #[test]
    fn primary_contexts_are_known_by_device() {
        let contexts = Contexts::default();
        contexts.set_primary(3, 9);
        contexts.set_primary(-1, 9);
        contexts.set_primary(64, 9);
        assert_eq!(contexts.primary(3), Some(9));
        assert_eq!(contexts.primary(2), None);
        assert_eq!(contexts.primary(-1), None);
    }
}
