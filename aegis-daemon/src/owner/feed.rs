//! Event → core → journal → action.

use aegis_common::action::Action;
use aegis_common::event::{Event, Stamped};
use aegis_common::id::JobId;
use aegis_common::job::{Exit, JobState};
use aegis_common::reason::StopReason;
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
    pub(super) fn settle(&mut self, actions: Vec<Action>, durable: bool) {
        for action in &actions {
            match action {
                Action::Finish { job, .. } => self.record_final(*job),
                Action::Learn { job, observed } => self.record_learned(*job, observed),
                _ => {}
            }
        }
        if durable {
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
                    let deferred = std::mem::take(&mut self.deferred);
                    self.feed(Event::JournalState { error: None });
                    for action in deferred {
                        self.perform_late(action);
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

    /// Carries out what had to wait for the journal, unless it was overtaken: a job that was refused
    /// or cancelled meanwhile must not start now.
    fn perform_late(&mut self, action: Action) {
        match action {
            Action::Start { job, attempt, .. } if !self.is_starting(job) => {
                self.never_started(job, attempt);
            }
            action => self.perform(action),
        }
    }

    fn is_starting(&self, job: JobId) -> bool {
        let job = self.core.job(job);
        job.is_some_and(|job| job.state == JobState::Starting)
    }

    /// An attempt that is to be stopped and was never started is over: no keeper will say so.
    pub(super) fn never_started(&mut self, job: JobId, attempt: u32) {
        let state = self.core.job(job).map(|job| job.state);
        let Some(JobState::Stopping { why }) = state else {
            return;
        };
        self.feed(match why {
            StopReason::Cancelled { .. } => Event::StartFailed {
                job,
                attempt,
                error: why.to_string(),
            },
            _ => Event::Ended {
                job,
                attempt,
                exit: Exit::Unknown,
            },
        });
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
