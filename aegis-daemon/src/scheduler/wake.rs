//! The next moment at which something is due though no event comes.

use aegis_common::action::Action;
use aegis_common::id::Moment;

use super::core::Core;

impl Core {
    /// Asks to be woken when the next thing is due. A wake-up that comes too early only asks for
    /// another one, so an earlier one is left alone: deadlines that move with each launch cost
    /// nothing.
    pub(super) fn arm(&mut self, at: Moment, out: &mut Vec<Action>) {
        if self.wake.is_some_and(|wake| wake <= at) {
            self.wake = None;
        }
        let Some(due) = self.next_due(at) else {
            return;
        };
        if self.wake.is_none_or(|wake| due < wake) {
            self.wake = Some(due);
            out.push(Action::WakeAt { at: due });
        }
    }

    /// What is due later than `at`; what was due by then has been done or cannot be.
    fn next_due(&self, at: Moment) -> Option<Moment> {
        let waits = self.waiting.iter().map(|ask| ask.deadline);
        let runs = self.running.iter().filter_map(|&id| self.job_and_run(id));
        let runs = runs.flat_map(|(job, run)| {
            let phase = run.observation.due(&self.policy).map(|(due, _)| due);
            [phase, self.time_limit_of(job)]
        });
        waits
            .chain(runs.flatten())
            .chain(self.reservation_due())
            .filter(|&due| due > at)
            .min()
    }
}
