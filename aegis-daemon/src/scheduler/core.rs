//! The core's state and its step.

use std::collections::{BTreeMap, BTreeSet};

use aegis_common::action::Action;
use aegis_common::event::Event;
use aegis_common::id::{GpuIndex, JobId, Moment};
use aegis_common::policy::Policy;
use serde::{Deserialize, Serialize};

use super::gpu::GpuState;
use super::job::{Job, Run};
use super::progress::{Host, Pace};
use super::queue::Queue;
use super::quote::Ask;
use super::reserve::Reservation;
use super::usual::Usual;

/// All the scheduler knows. The same events in the same order give the same actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Core {
    /// The moment of the last step.
    pub(super) now: Moment,
    pub(super) policy: Policy,
    pub(super) gpus: BTreeMap<GpuIndex, GpuState>,
    /// Live jobs, and those over but not forgotten.
    pub(super) jobs: BTreeMap<JobId, Job>,
    /// The pending ones.
    pub(super) queue: Queue,
    /// Those with an attempt in progress.
    pub(super) running: BTreeSet<JobId>,
    /// Requests for memory that wait for room.
    pub(super) waiting: Vec<Ask>,
    pub(super) reservation: Option<Reservation>,
    /// The GPU used last, for round-robin placement.
    pub(super) last_placed: Option<GpuIndex>,
    /// Why nothing may start.
    pub(super) journal_error: Option<String>,
    /// The wake-up asked for last, while it has not come.
    pub(super) wake: Option<Moment>,
    /// A new daemon has not yet told what became of the attempts in progress: one whose time limit
    /// passed meanwhile may have ended before it did.
    #[serde(default)]
    pub(super) resuming: bool,
    /// How busy the host is.
    #[serde(default)]
    pub(super) host: Host,
    /// What jobs usually are like, for those nothing is known of.
    #[serde(default)]
    pub(super) usual: Usual,
}

impl Core {
    /// A core that knows of no GPU and no job, with the default policy.
    #[must_use]
    pub fn new() -> Self {
        Self {
            now: Moment::default(),
            policy: Policy::default(),
            gpus: BTreeMap::new(),
            jobs: BTreeMap::new(),
            queue: Queue::default(),
            running: BTreeSet::new(),
            waiting: Vec::new(),
            reservation: None,
            last_placed: None,
            journal_error: None,
            wake: None,
            resuming: false,
            host: Host::default(),
            usual: Usual::default(),
        }
    }

    /// Takes an event and returns what shall be done, in this order. Never panics, whatever the
    /// event says; a moment before the last one counts as the last one.
    pub fn step(&mut self, at: Moment, event: &Event) -> Vec<Action> {
        let at = at.max(self.now);
        self.now = at;
        let mut out = Vec::new();
        self.take(at, event, &mut out);
        self.observe(at);
        self.stop_overdue(at, &mut out);
        self.retry_waiting(at, &mut out);
        if let Event::Sampled { sample } = event {
            self.rescue(sample.gpu, &mut out);
        }
        self.reserve(at, &mut out);
        let _claimants = self.place(at, &mut out);
        self.mark_oldest(&mut out);
        self.arm(at, &mut out);
        out
    }

    fn take(&mut self, at: Moment, event: &Event, out: &mut Vec<Action>) {
        match event {
            Event::Configured { policy } => {
                self.policy = policy.clone();
                self.resuming = false;
            }
            Event::MachineFound { gpus } => self.machine_found(at, gpus),
            Event::Submitted {
                job,
                uid,
                resources,
                learned,
            } => self.submitted(at, *job, *uid, resources, learned),
            Event::CancelRequested { job, by } => self.cancel_requested(at, *job, *by, out),
            Event::Started { job, attempt, gpus } => self.started(at, *job, *attempt, gpus),
            Event::StartFailed {
                job,
                attempt,
                error,
            } => self.start_failed(at, *job, *attempt, error, out),
            Event::Ended { job, attempt, exit } => self.ended(at, *job, *attempt, *exit, out),
            Event::JournalState { error } => self.journal_error.clone_from(error),
            Event::ProcessAttached { job, process } => self.attached(*job, *process, true, out),
            Event::ProcessUninstrumented { job, process } => {
                self.attached(*job, *process, false, out);
            }
            Event::ProcessGone { job, process } => self.process_gone(*job, *process, out),
            Event::FirstLaunch { job, process } => self.first_launch(at, *job, *process, out),
            Event::Usage {
                job,
                process,
                launches,
                gpus,
            } => self.usage(at, *job, *process, *launches, gpus, out),
            Event::Progress {
                job,
                process,
                fingerprint,
                rate_uhz,
                window_ms,
            } => {
                let pace = Pace {
                    fingerprint: *fingerprint,
                    rate_uhz: *rate_uhz,
                    window_ms: *window_ms,
                    at,
                };
                self.progressed(*job, *process, pace);
            }
            Event::HostSampled {
                cpu_waits,
                io_waits,
            } => {
                self.host = Host {
                    cpu_waits: *cpu_waits,
                    io_waits: *io_waits,
                };
            }
            Event::Sampled { sample } => {
                self.sampled(at, sample);
                self.attribute(sample.gpu);
            }
            Event::Grow { .. } => self.grow(at, event, out),
            Event::GrowAbandoned { request } => self.forget_ask(*request),
            Event::Woken => self.wake = None,
        }
    }

    /// A job and its attempt in progress.
    pub(super) fn job_and_run(&self, id: JobId) -> Option<(&Job, &Run)> {
        let job = self.jobs.get(&id)?;
        Some((job, job.run.as_ref()?))
    }
}

impl Default for Core {
    fn default() -> Self {
        Self::new()
    }
}
