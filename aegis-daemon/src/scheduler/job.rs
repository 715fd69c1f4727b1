//! A job's record.

use std::collections::BTreeSet;

use aegis_common::action::StopHow;
use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use aegis_common::job::{Outcome, Resources};
use aegis_common::learned::{Learned, Profile, SoloRate};
use aegis_common::policy::Policy;
use aegis_common::reason::StopReason;
use serde::{Deserialize, Serialize};

use super::demand::Demand;
use super::observe::Observation;
use super::process::Process;
use super::progress::Done;
use super::queue::Ticket;
use super::recent::RecentMin;
use super::view::AttemptSummary;

/// A job from submission until it is forgotten.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) id: JobId,
    pub(super) uid: u32,
    pub(super) resources: Resources,
    pub(super) submitted: Moment,
    /// When it last became pending.
    pub(super) pending_since: Moment,
    pub(super) first_started: Option<Moment>,
    pub(super) ended: Option<Moment>,
    pub(super) stage: Stage,
    /// Oldest first; the last one is in progress while `run` is there.
    pub(super) attempts: Vec<AttemptSummary>,
    /// What the attempt in progress holds.
    pub(super) run: Option<Run>,
    /// Bytes the next attempt is promised on each GPU, once an attempt told. Only grows.
    pub(super) floor: Option<u64>,
    /// The next attempt has its GPUs to itself.
    pub(super) next_exclusive: bool,
    pub(super) retries_used: u32,
    pub(super) evictions: u32,
    /// Its allocator repeats a refused request after freeing its cache.
    pub(super) client_retries: bool,
    /// Largest overhead an earlier attempt needed on a GPU, bytes.
    pub(super) overhead_seen: u64,
    /// The owner's turn in the queue before this job was last started.
    pub(super) turn: u64,
    /// What earlier runs of its command taught.
    #[serde(default)]
    pub(super) learned: Learned,
    /// How busy it was seen to keep a GPU alone.
    #[serde(default)]
    pub(super) alone: Option<Profile>,
    /// The same, worked out from what it added to a shared GPU.
    #[serde(default)]
    pub(super) shared: Option<Profile>,
    /// How fast its launch sequences were seen to go alone, the latest last.
    #[serde(default)]
    pub(super) solo_rates: Vec<SoloRate>,
    /// Its place among its user's jobs, where the order is not that of submission; fixed while it
    /// is pending.
    #[serde(default)]
    pub(super) rank: u64,
}

/// Where a job is; the phase of a running one is in its [`Run`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Stage {
    Pending,
    Starting,
    Running,
    Stopping { why: StopReason },
    Done { outcome: Outcome },
}

/// The attempt in progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Run {
    /// One per GPU.
    pub(super) holds: Vec<Hold>,
    /// Living processes, in the order they came.
    pub(super) processes: Vec<Process>,
    /// Processes that ended: a late event must not bring them back.
    pub(super) gone: BTreeSet<ProcessKey>,
    pub(super) observation: Observation,
    /// Refusals that ended processes never recovered from.
    pub(super) refusals: Vec<(GpuIndex, u64)>,
    /// How much of its time was measured, and what was done in it.
    #[serde(default)]
    pub(super) done: Done,
    /// It reserved all it saw at once: its peak says nothing.
    #[serde(default)]
    pub(super) greedy: bool,
}

/// What the attempt in progress holds on one GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Hold {
    pub(super) gpu: GpuIndex,
    /// Bytes its processes may hold together.
    pub(super) budget: u64,
    /// Bytes it started with.
    pub(super) start_budget: u64,
    /// What the budget can never exceed.
    pub(super) cap: Option<u64>,
    /// Shares the GPU with nobody.
    pub(super) exclusive: bool,
    /// Overhead expected before it was observed, bytes.
    pub(super) expected_overhead: u64,
    /// NVML's sum for the job − its ledgers.
    pub(super) overhead: RecentMin,
    /// Bytes of ended processes that no sample has shown free yet.
    pub(super) departed: u64,
    /// Highest bytes held by its ledgers.
    pub(super) peak: u64,
}

impl Job {
    /// A job just submitted.
    pub(super) fn new(
        id: JobId,
        uid: u32,
        resources: Resources,
        learned: Learned,
        at: Moment,
    ) -> Self {
        Self {
            id,
            uid,
            resources,
            submitted: at,
            pending_since: at,
            first_started: None,
            ended: None,
            stage: Stage::Pending,
            attempts: Vec::new(),
            run: None,
            floor: None,
            next_exclusive: false,
            retries_used: 0,
            evictions: 0,
            client_retries: false,
            overhead_seen: 0,
            turn: 0,
            alone: None,
            shared: None,
            solo_rates: learned.solo_rates.clone(),
            learned,
            rank: 0,
        }
    }

    /// The machine-wide order of who waits and who yields: smaller is older. A job that has never
    /// run is younger than all that have.
    pub(super) fn seniority(&self) -> (Moment, JobId) {
        (self.first_started.unwrap_or(Moment(u64::MAX)), self.id)
    }

    /// What its place in the queue depends on.
    pub(super) const fn ticket(&self) -> Ticket {
        Ticket {
            id: self.id,
            priority: self.resources.priority,
            lane: self.uid,
            rank: self.rank,
        }
    }

    /// May be stopped and started again to make room.
    pub(super) const fn evictable(&self, policy: &Policy) -> bool {
        (self.resources.requeue || self.resources.on_suspend.is_some())
            && self.evictions < policy.max_evictions
    }

    /// May be stopped to make room and goes on later where it was.
    pub(super) const fn suspendable(&self, policy: &Policy) -> bool {
        self.resources.on_suspend.is_some() && self.evictable(policy)
    }

    /// By what means it leaves its GPUs: it is only asked to save its state when it will go on.
    pub(super) const fn leaves_by(&self, why: &StopReason) -> StopHow {
        match (why, self.resources.on_suspend) {
            (StopReason::Evicted { .. } | StopReason::Rescue { .. }, Some(on_suspend)) => {
                StopHow::Suspend { on_suspend }
            }
            _ => StopHow::Terminate,
        }
    }

    /// The number of the attempt in progress or last over; 0 before the first.
    pub(super) fn attempt(&self) -> u32 {
        self.attempts.last().map_or(0, |attempt| attempt.number)
    }

    /// The peak that runs of the same or a similar command reached.
    pub(super) const fn known_peak(&self) -> Option<u64> {
        self.learned.peak
    }

    /// An attempt is in progress and was not told to end.
    pub(super) const fn stoppable(&self) -> bool {
        matches!(self.stage, Stage::Starting | Stage::Running)
    }

    /// What it holds on a GPU.
    pub(super) fn hold(&self, gpu: GpuIndex) -> Option<&Hold> {
        self.run.as_ref().and_then(|run| run.hold(gpu))
    }
}

impl Run {
    /// A new attempt's.
    pub(super) fn new(holds: Vec<Hold>, at: Moment) -> Self {
        Self {
            holds,
            processes: Vec::new(),
            gone: BTreeSet::new(),
            observation: Observation::new(at),
            refusals: Vec::new(),
            done: Done::default(),
            greedy: false,
        }
    }

    /// What it holds on a GPU.
    pub(super) fn hold(&self, gpu: GpuIndex) -> Option<&Hold> {
        self.holds.iter().find(|hold| hold.gpu == gpu)
    }

    /// What it holds on a GPU.
    pub(super) fn hold_mut(&mut self, gpu: GpuIndex) -> Option<&mut Hold> {
        self.holds.iter_mut().find(|hold| hold.gpu == gpu)
    }

    /// A living process.
    pub(super) fn process(&self, key: ProcessKey) -> Option<&Process> {
        self.processes.iter().find(|process| process.key == key)
    }

    /// A living process.
    pub(super) fn process_mut(&mut self, key: ProcessKey) -> Option<&mut Process> {
        self.processes.iter_mut().find(|process| process.key == key)
    }

    /// Bytes its ledgers say it holds on a GPU.
    pub(super) fn used(&self, gpu: GpuIndex) -> u64 {
        let lines = self
            .processes
            .iter()
            .filter_map(|process| process.line(gpu));
        lines.fold(0, |sum, line| sum.saturating_add(line.used))
    }

    /// Bytes it holds on a GPU or may take there without asking, and what ended processes held
    /// that no sample has shown free.
    pub(super) fn committed(&self, gpu: GpuIndex) -> u64 {
        let departed = self.hold(gpu).map_or(0, |hold| hold.departed);
        let lines = self
            .processes
            .iter()
            .filter_map(|process| process.line(gpu));
        lines.fold(departed, |sum, line| sum.saturating_add(line.charge()))
    }

    /// What its processes see as a GPU's total.
    pub(super) fn virtual_total(&self) -> Option<u64> {
        self.holds.first().and_then(|hold| hold.cap)
    }

    /// A process of it runs without the shim.
    pub(super) fn uninstrumented(&self) -> bool {
        self.processes.iter().any(|process| !process.instrumented)
    }
}

impl Hold {
    /// A new attempt's.
    pub(super) fn new(gpu: GpuIndex, budget: u64, demand: &Demand) -> Self {
        Self {
            gpu,
            budget,
            start_budget: budget,
            cap: demand.cap,
            exclusive: demand.exclusive,
            expected_overhead: demand.overhead,
            overhead: RecentMin::default(),
            departed: 0,
            peak: 0,
        }
    }
}
