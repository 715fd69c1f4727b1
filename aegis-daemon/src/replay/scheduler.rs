//! What replay drives: the daemon's core or a baseline.

use aegis_common::action::Action;
use aegis_common::event::Event;
use aegis_common::id::Moment;

use crate::scheduler::Core;

/// A scheduling policy: event in, actions out, like the daemon's core.
pub trait Scheduler {
    /// Takes an event and returns what shall be done.
    fn step(&mut self, at: Moment, event: &Event) -> Vec<Action>;
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
