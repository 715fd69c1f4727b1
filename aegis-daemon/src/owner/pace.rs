//! How fast processes repeat their launch sequences, on its way to the core.

use aegis_common::event::Event;
use aegis_common::id::{Moment, ProcessKey};
use aegis_common::wire::PaceView;
use tracing::debug;

use super::Owner;
use super::processes::Process;
use crate::lease::monotonic_ns;

impl Owner {
    /// Every process's pace, where it is certain.
    pub(super) fn measure_paces(&mut self) {
        for key in self.processes.keys() {
            self.measure_pace(key);
        }
    }

    /// Looks at a process's launch traces and tells the core its pace once one is certain.
    fn measure_pace(&mut self, key: ProcessKey) {
        let at = self.clock.now();
        let Some(process) = self.processes.get_mut(key) else {
            return;
        };
        let untraced = process.last.as_ref().map_or(0, |last| last.untraced);
        let ledger = &process.ledger;
        let marks = ledger.marks();
        let read = |slot| match ledger.trace(slot) {
            Ok(trace) => Some(trace),
            Err(error) => {
                debug!(pid = key.pid, %error, "launch trace");
                None
            }
        };
        let Some(pace) = process.tracker.look(monotonic_ns(), untraced, &marks, read) else {
            return;
        };
        process.pace = Some((at, pace));
        let job = process.job;
        self.feed(Event::Progress {
            job,
            process: key,
            fingerprint: pace.fingerprint,
            rate_uhz: pace.rate_uhz,
            window_ms: pace.window_ms,
        });
    }
}

impl Process {
    /// The last pace measured, for display.
    pub(super) fn pace_view(&self, now: Moment) -> Option<PaceView> {
        let (at, pace) = self.pace?;
        Some(PaceView {
            fingerprint: pace.fingerprint,
            period: pace.period,
            rate_uhz: pace.rate_uhz,
            window_ms: pace.window_ms,
            age_ms: now.millis_since(at),
        })
    }
}
