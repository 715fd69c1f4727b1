//! Jobs that go on where an earlier attempt saved their state.

use aegis_common::id::JobId;
use aegis_common::learned::Observed;
use aegis_common::reason::StopReason;

use super::Owner;

impl Owner {
    /// How long earlier attempts of the job ran that made room for others and had been asked to
    /// save their state; `None`: there was none, the attempt began at the beginning.
    pub(super) fn ran_before(&self, job: JobId) -> Option<u64> {
        let record = self.records.get(&job)?;
        record.resources.on_suspend?;
        let mut before = None;
        for attempt in self.core.job(job)?.attempts {
            let yielded = matches!(
                attempt.stopped,
                Some(StopReason::Evicted { .. } | StopReason::Rescue { .. })
            );
            // An attempt that was never started had nothing to save.
            if let (true, Some(started), Some(ended)) = (yielded, attempt.started, attempt.ended) {
                *before.get_or_insert(0_u64) += ended.millis_since(started);
            }
        }
        before
    }
}

/// What an attempt that went on taught, as if it had run in one piece: how much of the earlier
/// attempts' time was lost or was a slowdown is not known, so that the result is rather too long.
pub(super) fn in_one_piece(observed: &Observed, ran_before_ms: u64) -> Observed {
    Observed {
        ran_ms: observed.ran_ms.saturating_add(ran_before_ms),
        work_ms: observed
            .work_ms
            .map(|work| work.saturating_add(ran_before_ms)),
        ..observed.clone()
    }
}
