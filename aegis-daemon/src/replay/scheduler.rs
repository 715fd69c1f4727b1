//! What replay drives: the daemon's core or a baseline.

use aegis_common::action::Action;
use aegis_common::event::Event;
use aegis_common::id::Moment;

use crate::scheduler::Core;

/// A scheduling policy: event in, actions out, like the daemon's core.
pub trait Scheduler {
    /// Takes an event and returns what shall be done.
    fn step(&mut self, at: Moment, event: &Event) -> Vec<Action>;

    /// Its jobs carry the shim: they ask for memory, obey leases, and report ledgers and progress.
    /// Without it they take what the GPU has, and only die when it has none.
    fn instrumented(&self) -> bool {
        true
    }

    /// Samples at one a second that it needs after a change on a GPU before it can decide. The
    /// core's: its observation of 10 s and a full window of 10.
    fn samples_after_change(&self) -> u32 {
        20
    }
}

impl Scheduler for Core {
    fn step(&mut self, at: Moment, event: &Event) -> Vec<Action> {
        let actions = Core::step(self, at, event);
        for action in &actions {
            if let Action::Finish { job, .. } = action {
                self.forget(*job);
            }
        }
        actions
    }
}
