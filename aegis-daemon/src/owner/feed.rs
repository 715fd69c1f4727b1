//! Event → core → journal → action.

use std::collections::BTreeSet;

use aegis_common::action::Action;
use aegis_common::event::{Event, Stamped};
use aegis_common::id::JobId;
use aegis_common::job::Exit;
use tracing::{debug, error, info};

use super::Owner;
use crate::failpoint;

/// Events after which the core's state is written whole and older journal rows become prunable.
const SNAPSHOT_EVERY: u32 = 5_000;
/// Bytes of unwritten journal beyond which events that a restart rebuilds anyway are left out.
const BACKLOG_MAX: usize = 64 << 20;

impl Owner {
    /// Lets the core see `event`, journals it, and carries out what follows.
    ///
    /// The core is pure, so stepping it before the journal write changes nothing outside: the
    /// actions are carried out only once the event is on disk.
    pub(super) fn feed(&mut self, event: Event) {
        let at = self.clock.now();
        let actions = self.core.step(at, &event);
        debug!(?event, ?actions, "step");
        let durable = event.is_durable() || actions.iter().any(Action::needs_journal);
        self.append(Stamped { at, event }, &actions, durable);
        self.settle(actions, durable);
    }

    /// Queues the event for the journal. While the journal cannot be written only what must not be
    /// lost is queued once the backlog is large: samples would fill the memory.
    fn append(&mut self, event: Stamped, actions: &[Action], durable: bool) {
        if !durable && self.store.backlog() > BACKLOG_MAX {
            return;
        }
        if let Err(failure) = self.store.append(&event, actions) {
            error!(error = %failure, "an event is missing in the journal");
        }
        self.since_snapshot += 1;
    }

    /// Commits if needed, then carries the actions out (or keeps those that need a journal which
    /// cannot be written).
    pub(super) fn settle(&mut self, mut actions: Vec<Action>, durable: bool) {
        for action in &actions {
            if let Action::Finish { job, .. } = action {
                self.record_final(*job);
            }
        }
        if durable {
            if self.journal_error.is_some() {
                // Behind what waits already, so that a stop can withdraw a start.
                let waits = |action: &Action| action.needs_journal();
                let (waiting, rest): (Vec<_>, Vec<_>) = actions.into_iter().partition(waits);
                self.deferred.extend(waiting);
                actions = rest;
            }
            self.commit();
        }
        for action in actions {
            if action.needs_journal() && self.journal_error.is_some() {
                self.deferred.push(action);
            } else {
                self.perform(action);
                failpoint::hit("owner.performed");
            }
        }
    }

    /// Writes everything appended so far. A failure is remembered, told to the core (which then
    /// starts nothing) and retried by [`Owner::run`]'s timer.
    pub(super) fn commit(&mut self) {
        match self.store.commit() {
            Ok(()) => {
                failpoint::hit("owner.committed");
                if self.journal_error.take().is_some() {
                    info!("the journal can be written again");
                    let mut deferred = std::mem::take(&mut self.deferred);
                    let withdrawn = withdraw(&mut deferred);
                    self.feed(Event::JournalState { error: None });
                    for action in deferred {
                        self.perform(action);
                    }
                    for (job, attempt) in withdrawn {
                        let exit = Exit::Unknown;
                        self.feed(Event::Ended { job, attempt, exit });
                    }
                }
            }
            Err(failure) => {
                let text = failure.to_string();
                if self.journal_error.replace(text.clone()).is_none() {
                    error!(error = %text, "the journal cannot be written; nothing starts until it can");
                    self.feed(Event::JournalState { error: Some(text) });
                }
            }
        }
    }

    /// Starts a new journal epoch when the current one has grown long.
    pub(super) fn snapshot_if_due(&mut self) {
        if self.since_snapshot >= SNAPSHOT_EVERY {
            self.snapshot();
        }
    }

    /// Writes the core's state whole, so that a restart replays only what follows.
    pub(super) fn snapshot(&mut self) {
        self.commit();
        if self.journal_error.is_some() {
            return;
        }
        let written = serde_json::to_string(&self.core)
            .map_err(|failure| failure.to_string())
            .and_then(|json| {
                self.store
                    .snapshot(&json)
                    .map_err(|failure| failure.to_string())
            });
        match written {
            Ok(()) => self.since_snapshot = 0,
            Err(failure) => error!(error = %failure, "no snapshot; the journal grows on"),
        }
    }
}

/// Takes out the attempts that were to be started and then to be stopped, all while the journal
/// could not be written: they never begin. Their submitters may have been told so already.
fn withdraw(deferred: &mut Vec<Action>) -> Vec<(JobId, u32)> {
    let attempt_of = |action: &Action| match action {
        Action::Start { job, attempt, .. } | Action::Stop { job, attempt, .. } => {
            Some((*job, *attempt))
        }
        _ => None,
    };
    let started = |action: &&Action| matches!(action, Action::Start { .. });
    let started: BTreeSet<_> = deferred
        .iter()
        .filter(started)
        .filter_map(attempt_of)
        .collect();
    let stopped = |action: &&Action| matches!(action, Action::Stop { .. });
    let stopped: BTreeSet<_> = deferred
        .iter()
        .filter(stopped)
        .filter_map(attempt_of)
        .collect();
    let withdrawn: Vec<_> = started.intersection(&stopped).copied().collect();
    deferred.retain(|action| attempt_of(action).is_none_or(|of| !withdrawn.contains(&of)));
    withdrawn
}

#[cfg(test)]
mod tests {
    use aegis_common::action::Action;
    use aegis_common::id::{GpuIndex, JobId};
    use aegis_common::reason::StopReason;

    use super::withdraw;

    fn start(job: u64) -> Action {
        Action::Start {
            job: JobId(job),
            attempt: 1,
            gpus: vec![GpuIndex(0)],
            virtual_total: None,
        }
    }

    fn stop(job: u64) -> Action {
        Action::Stop {
            job: JobId(job),
            attempt: 1,
            why: StopReason::Cancelled { by: 0 },
        }
    }

    #[test]
    fn what_was_cancelled_before_it_could_start_never_does() {
        let mut deferred = vec![start(1), stop(2), start(3), stop(1)];
        assert_eq!(withdraw(&mut deferred), [(JobId(1), 1)]);
        assert_eq!(deferred, [stop(2), start(3)]);
    }
}
