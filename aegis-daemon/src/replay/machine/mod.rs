//! The machine around a scheduler: GPUs, programs, shims and telemetry, driven by events.
//!
//! ```text
//!   clock --timer--> attempt: plan, memory (asks, allocates, dies), ending
//!                      |  anything that changes who launches where
//!                      v
//!                    speed: rates of all attempts --> their next timers
//!                      |
//!                      v
//!                    telemetry: samples, ledgers, progress --event--> scheduler --action--> act
//! ```

mod act;
mod attempt;
mod blame;
mod clock;
mod config;
mod gpu;
mod job;
mod memory;
mod plan;
mod speed;
mod telemetry;

use std::collections::{BTreeSet, VecDeque};

use aegis_common::event::{self, Event};
use aegis_common::id::{GpuIndex, JobId};
use aegis_common::job::Resources;
use aegis_common::learned::{Learned, Observed};

pub use config::MachineConfig;

use self::clock::{Clock, Timer};
use self::gpu::Gpu;
use self::job::{Job, JobStage};
use super::outcome::{JobOutcome, Outcome, Point};
use super::trace::{Trace, TraceJob};
use super::truth::{Noise, Pairs};
use super::workload::Workload;

/// Between two samples of a GPU on which nothing changes, milliseconds.
pub(super) const SLOW_SAMPLE_MS: u64 = 30_000;
/// Without any attempt starting, advancing or ending for so long a replay is given up,
/// milliseconds.
const GIVE_UP_MS: u64 = 24 * 3_600_000;

/// What is known of a job's command before it runs.
pub type History<'a> = &'a dyn Fn(&TraceJob) -> Learned;

/// The machine.
pub(super) struct Machine<'a> {
    config: &'a MachineConfig,
    trace: &'a Trace,
    history: History<'a>,
    /// The scheduler's processes carry the shim.
    instrumented: bool,
    /// Quick samples after a change.
    burst: u32,
    /// Milliseconds after the trace's beginning.
    pub(super) now: u64,
    clock: Clock,
    gpus: Vec<Gpu>,
    jobs: Vec<Job>,
    /// Jobs with an attempt in progress.
    live: BTreeSet<usize>,
    /// How many jobs were submitted.
    submitted: usize,
    pending: usize,
    over: usize,
    pairs: Pairs<'a>,
    sample_noise: Noise,
    progress_noise: Noise,
    /// What the scheduler has not been told yet.
    pub(super) outbox: VecDeque<Event>,
    /// Who launches where, or a plan, has changed.
    dirty: bool,
    /// The last request for memory.
    requests: u64,
    /// The last edition given to a timer.
    editions: u64,
    /// The wake-up timer that counts.
    wake: u64,
    /// CPU pressure last told, thousandths.
    cpu_waits: Option<u16>,
    /// When anything last started, advanced or ended.
    moved: u64,
    taught: Vec<(usize, Observed)>,
    series: Vec<Point>,
}

impl<'a> Machine<'a> {
    /// A machine on which nothing has happened yet. `burst`: quick samples after each change.
    pub(super) fn new(
        trace: &'a Trace,
        config: &'a MachineConfig,
        seed: u64,
        history: History<'a>,
        instrumented: bool,
        burst: u32,
    ) -> Self {
        Self {
            config,
            trace,
            history,
            instrumented,
            burst,
            now: 0,
            clock: Clock::default(),
            gpus: (0..config.gpus).map(|_| Gpu::new()).collect(),
            jobs: trace.jobs.iter().map(|_| Job::default()).collect(),
            live: BTreeSet::new(),
            submitted: 0,
            pending: 0,
            over: 0,
            pairs: Pairs::new(
                &trace.workloads,
                &config.interference,
                config.interference_factor,
                config.pair_noise,
                seed,
            ),
            sample_noise: Noise::new(seed, [u64::MAX, 1]),
            progress_noise: Noise::new(seed, [u64::MAX, 2]),
            outbox: VecDeque::new(),
            dirty: false,
            requests: 0,
            editions: 0,
            wake: 0,
            cpu_waits: None,
            moved: 0,
            taught: Vec::new(),
            series: Vec::new(),
        }
    }

    /// The daemon comes up: policy, GPUs, first samples.
    pub(super) fn begin(&mut self) {
        let policy = self.config.told_policy();
        self.outbox.push_back(Event::Configured { policy });
        let gpus = (0..self.config.gpus).map(|index| event::Gpu {
            index: GpuIndex(index),
            uuid: format!("GPU-{index}"),
            name: "simulated".to_owned(),
            memory: self.config.gpu_memory,
            tier: self.config.tier,
            peers: Vec::new(),
        });
        let gpus = gpus.collect();
        self.outbox.push_back(Event::MachineFound { gpus });
        self.dirty = true;
        for gpu in 0..self.gpus.len() {
            self.sample(gpu);
        }
        if let Some(first) = self.trace.jobs.first() {
            self.clock.set(first.submit_ms, Timer::Submit);
        }
    }

    /// Lets the next thing happen; false when there is none or all jobs are over.
    pub(super) fn advance(&mut self) -> bool {
        if self.over == self.jobs.len() {
            return false;
        }
        let Some((at, timer)) = self.clock.next() else {
            return false;
        };
        self.now = self.now.max(at);
        if self.live.iter().any(|&job| self.is_advancing(job)) || self.submitted < self.jobs.len() {
            self.moved = self.now;
        } else if self.now - self.moved > GIVE_UP_MS {
            return false;
        }
        match timer {
            Timer::Submit => self.submit(),
            Timer::Launched { job, attempt } => self.launched(job, attempt),
            Timer::Step { job, edition } => self.step(job, edition),
            Timer::Exit { job, attempt } => self.exit(job, attempt),
            Timer::Report { job, edition } => self.report_due(job, edition),
            Timer::Sample { gpu, edition } => self.sample_due(gpu, edition),
            Timer::Wake { edition } => {
                if edition == self.wake {
                    self.outbox.push_back(Event::Woken);
                }
            }
        }
        true
    }

    /// The trace's next job is submitted.
    fn submit(&mut self) {
        let index = self.submitted;
        let Some(job) = self.trace.jobs.get(index) else {
            return;
        };
        self.submitted += 1;
        if let Some(next) = self.trace.jobs.get(self.submitted) {
            self.clock.set(next.submit_ms.max(self.now), Timer::Submit);
        }
        if let Some(state) = self.jobs.get_mut(index) {
            state.stage = JobStage::Pending;
        }
        self.now_pending();
        let peak = self.workload(index).map(Workload::peak);
        let resources = Resources {
            gpus: job.gpus,
            gpu_mem: job.gpu_mem.or(peak.filter(|_| self.config.declare_peaks)),
            priority: 0,
            exclusive: false,
            requeue: self.config.requeue,
            retries: self.config.retries,
            time_limit_s: job.time_limit_s,
            on_suspend: self.config.on_suspend,
        };
        self.outbox.push_back(Event::Submitted {
            job: id_of(index),
            uid: 1000 + job.user,
            resources,
            learned: (self.history)(job),
        });
    }

    /// What the whole replay gave.
    pub(super) fn into_outcome(self) -> Outcome {
        let jobs = self.trace.jobs.iter().zip(self.jobs).map(|(job, state)| {
            let startup_s = self.trace.workloads.get(job.workload);
            let startup_s = startup_s.map_or(0.0, |workload| workload.startup_s);
            let (ended_ms, outcome) = state.ended.unzip();
            JobOutcome {
                submitted_ms: job.submit_ms,
                ended_ms,
                outcome,
                gpus: job.gpus,
                solo_s: startup_s + self.trace.solo_s(job),
                attempts: state.attempts,
            }
        });
        Outcome {
            gpus: self.config.gpus,
            jobs: jobs.collect(),
            taught: self.taught,
            steps: 0,
            journal: Vec::new(),
            series: self.series,
        }
    }

    fn workload(&self, job: usize) -> Option<&'a Workload> {
        let job = self.trace.jobs.get(job)?;
        self.trace.workloads.get(job.workload)
    }

    fn edition(&mut self) -> u64 {
        self.editions += 1;
        self.editions
    }
}

/// The number of the job at a place of the trace.
pub(super) fn id_of(job: usize) -> JobId {
    JobId(job as u64 + 1)
}

/// The place of a job in the trace; of an unknown one, beyond its end.
pub(super) fn place_of(id: JobId) -> usize {
    id.0.checked_sub(1)
        .and_then(|place| usize::try_from(place).ok())
        .unwrap_or(usize::MAX)
}
