//! A consistent machine around a core: it plays keepers, processes and telemetry.

use std::collections::BTreeMap;

use aegis_common::action::{Action, GrowAnswer};
use aegis_common::event::{Event, ForeignProcess, Gpu, GpuSample, ProcessGpu, Stamped};
use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use aegis_common::job::{Exit, JobState, Resources};
use aegis_common::learned::Learned;
use aegis_common::policy::{Policy, Tier};
use aegis_common::reason::Blocker;

use crate::scheduler::{Core, JobSummary};

/// A gibibyte.
pub(super) const GIB: u64 = 1 << 30;
/// A mebibyte.
pub(super) const MIB: u64 = 1 << 20;
/// What a context of a process costs here.
pub(super) const CONTEXT: u64 = 300 * MIB;

/// The machine.
pub(super) struct World {
    pub(super) core: Core,
    pub(super) now: u64,
    /// Everything fed, and what the core answered.
    pub(super) journal: Vec<(Stamped, Vec<Action>)>,
    pub(super) gpus: Vec<Gpu>,
    /// What telemetry reports, thousandths: SM activity, occupancy, DRAM; `None`: nothing.
    pub(super) busy: BTreeMap<GpuIndex, Option<(u16, u16, u16)>>,
    pub(super) foreign: BTreeMap<GpuIndex, Vec<ForeignProcess>>,
    /// Living processes and what they hold per GPU.
    pub(super) processes: BTreeMap<(JobId, ProcessKey), Holdings>,
    /// Looks at each step.
    pub(super) observer: Option<Observer>,
    wake: Option<u64>,
    next_job: u64,
    next_request: u64,
    next_pid: u32,
}

/// Sees the core after a step, the event and the actions.
pub(super) type Observer = Box<dyn FnMut(&Core, &Event, &[Action])>;

/// What a process holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Holdings {
    pub(super) used: BTreeMap<GpuIndex, u64>,
    pub(super) refusal: BTreeMap<GpuIndex, u64>,
    pub(super) launches: u64,
}

/// One GPU, anything else default.
pub(super) fn resources() -> Resources {
    Resources {
        gpus: 1,
        gpu_mem: None,
        priority: 0,
        exclusive: false,
        requeue: true,
        retries: 3,
        time_limit_s: None,
        on_suspend: None,
    }
}

/// The same with a declared peak in GiB.
pub(super) fn declared(gib: u64) -> Resources {
    Resources {
        gpu_mem: Some(gib * GIB),
        ..resources()
    }
}

/// The GPU with that index.
pub(super) fn gpu(index: u32) -> GpuIndex {
    GpuIndex(index)
}

impl World {
    /// A machine of `gpus` idle, sampled GPUs of 40 GiB.
    pub(super) fn new(gpus: u32) -> Self {
        Self::with(gpus, Policy::default(), Tier::Gpm)
    }

    /// The same with a policy and a tier.
    pub(super) fn with(gpus: u32, policy: Policy, tier: Tier) -> Self {
        let mut world = Self::unsampled(gpus, policy, tier);
        world.sample_all();
        world
    }

    /// The same before the first sample.
    pub(super) fn unsampled(gpus: u32, policy: Policy, tier: Tier) -> Self {
        let gpus = (0..gpus).map(|index| Gpu {
            index: GpuIndex(index),
            uuid: format!("GPU-{index}"),
            name: "test".to_owned(),
            memory: 40 * GIB,
            tier,
            peers: Vec::new(),
        });
        let mut world = Self {
            core: Core::new(),
            now: 1_000_000,
            journal: Vec::new(),
            gpus: gpus.collect(),
            busy: BTreeMap::new(),
            foreign: BTreeMap::new(),
            processes: BTreeMap::new(),
            observer: None,
            wake: None,
            next_job: 1,
            next_request: 1,
            next_pid: 100,
        };
        world.feed(Event::Configured { policy });
        let gpus = world.gpus.clone();
        world.feed(Event::MachineFound { gpus });
        world
    }

    /// Feeds an event now.
    pub(super) fn feed(&mut self, event: Event) -> Vec<Action> {
        let at = Moment(self.now);
        let actions = self.core.step(at, &event);
        for action in &actions {
            if let Action::WakeAt { at } = action {
                self.wake = Some(at.0);
            }
        }
        if let Some(observer) = self.observer.as_mut() {
            observer(&self.core, &event, &actions);
        }
        let stamped = Stamped { at, event };
        self.journal.push((stamped, actions.clone()));
        actions
    }

    /// A new daemon loads the core, and adopts the processes that live.
    pub(super) fn restart(&mut self) {
        let stored = serde_json::to_string(&self.core).expect("serialises");
        self.core = serde_json::from_str(&stored).expect("deserialises");
        self.wake = None;
        for action in self.core.resume() {
            if let Action::WakeAt { at } = action {
                self.wake = Some(at.0);
            }
        }
        let processes: Vec<(JobId, ProcessKey)> = self.processes.keys().copied().collect();
        for (job, process) in processes {
            self.feed(Event::ProcessAttached { job, process });
            self.report(job, process);
        }
        let policy = self.core.policy.clone();
        self.feed(Event::Configured { policy });
    }

    /// Lets time pass, waking the core when it asked for it.
    pub(super) fn pass(&mut self, millis: u64) -> Vec<Action> {
        let target = self.now + millis;
        let mut actions = Vec::new();
        while let Some(wake) = self.wake.filter(|&wake| wake <= target) {
            self.wake = None;
            self.now = self.now.max(wake);
            actions.extend(self.feed(Event::Woken));
        }
        self.now = target;
        actions
    }

    /// Lets time pass with two samples of each GPU a second.
    pub(super) fn watch(&mut self, seconds: u64) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..seconds * 2 {
            actions.extend(self.pass(500));
            actions.extend(self.sample_all());
        }
        actions
    }

    /// Submits a job.
    pub(super) fn submit(&mut self, resources: Resources) -> JobId {
        self.submit_as(100, resources)
    }

    /// Submits a job of a user.
    pub(super) fn submit_as(&mut self, uid: u32, resources: Resources) -> JobId {
        let job = JobId(self.next_job);
        self.next_job += 1;
        self.feed(Event::Submitted {
            job,
            uid,
            resources,
            learned: Learned::default(),
        });
        job
    }

    /// The attempt's start record exists.
    pub(super) fn started(&mut self, job: JobId) -> Vec<Action> {
        let attempt = self.job(job).attempts.last().cloned().expect("an attempt");
        self.feed(Event::Started {
            job,
            attempt: attempt.number,
            gpus: attempt.gpus,
        })
    }

    /// Submits a job that starts at once.
    pub(super) fn run(&mut self, resources: Resources) -> JobId {
        let job = self.submit(resources);
        assert!(self.is_starting(job), "{:?}", self.blockers(job));
        self.started(job);
        job
    }

    /// A process of a job introduces itself.
    pub(super) fn attach(&mut self, job: JobId) -> ProcessKey {
        let process = ProcessKey {
            pid: self.next_pid,
            start_ticks: 7,
        };
        self.next_pid += 1;
        self.processes.insert((job, process), Holdings::default());
        self.feed(Event::ProcessAttached { job, process });
        process
    }

    /// A process asks for that much more.
    pub(super) fn grow(
        &mut self,
        job: JobId,
        process: ProcessKey,
        gpu: GpuIndex,
        bytes: u64,
    ) -> (u64, Vec<Action>) {
        let request = self.next_request;
        self.next_request += 1;
        let holdings = self.processes.get(&(job, process));
        let used = holdings.and_then(|holdings| holdings.used.get(&gpu));
        let held = used.copied().unwrap_or(0) + bytes;
        let actions = self.feed(Event::Grow {
            request,
            job,
            process,
            gpu,
            bytes,
            held,
            try_number: 1,
        });
        (request, actions)
    }

    /// A process allocates that much more; panics unless it is granted at once.
    pub(super) fn allocate(&mut self, job: JobId, process: ProcessKey, at: GpuIndex, bytes: u64) {
        let (request, actions) = self.grow(job, process, at, bytes);
        let answer = answer(&actions, request);
        assert!(
            matches!(answer, Some(GrowAnswer::Granted { .. })),
            "{answer:?}"
        );
        self.hold(job, process, at, bytes);
    }

    /// A process holds that much more, and reports it.
    pub(super) fn hold(&mut self, job: JobId, process: ProcessKey, at: GpuIndex, bytes: u64) {
        let holdings = self.processes.entry((job, process)).or_default();
        *holdings.used.entry(at).or_default() += bytes;
        self.report(job, process);
    }

    /// A process's ledger is read.
    pub(super) fn report(&mut self, job: JobId, process: ProcessKey) -> Vec<Action> {
        let holdings = self
            .processes
            .get(&(job, process))
            .cloned()
            .unwrap_or_default();
        let lines = holdings.used.iter().map(|(&gpu, &used)| ProcessGpu {
            gpu,
            used,
            inflight: 0,
            nvml: Some(used + CONTEXT),
            refusal: holdings.refusal.get(&gpu).copied(),
        });
        let gpus = lines.collect();
        self.feed(Event::Usage {
            job,
            process,
            launches: holdings.launches,
            gpus,
        })
    }

    /// A process launches for the first time.
    pub(super) fn launch(&mut self, job: JobId, process: ProcessKey) -> Vec<Action> {
        let holdings = self.processes.entry((job, process)).or_default();
        holdings.launches += 1;
        self.feed(Event::FirstLaunch { job, process })
    }

    /// A process that attaches, allocates on the job's first GPU and launches.
    pub(super) fn train(&mut self, job: JobId, bytes: u64) -> ProcessKey {
        let process = self.attach(job);
        let first = self.job(job).attempts.last().map(|last| last.gpus[0]);
        self.allocate(job, process, first.expect("a GPU"), bytes);
        self.launch(job, process);
        process
    }

    /// Starts a job that trains with that much memory and has been observed.
    pub(super) fn steady(&mut self, resources: Resources, bytes: u64) -> (JobId, ProcessKey) {
        let job = self.run(resources);
        let process = self.train(job, bytes);
        self.watch(15);
        (job, process)
    }

    /// A process ends.
    pub(super) fn gone(&mut self, job: JobId, process: ProcessKey) -> Vec<Action> {
        self.processes.remove(&(job, process));
        self.feed(Event::ProcessGone { job, process })
    }

    /// An attempt ends with all its processes, and telemetry shows it.
    pub(super) fn end(&mut self, job: JobId, exit: Exit) -> Vec<Action> {
        let mut actions = self.end_unsampled(job, exit);
        actions.extend(self.sample_all());
        actions
    }

    /// An attempt ends with all its processes.
    pub(super) fn end_unsampled(&mut self, job: JobId, exit: Exit) -> Vec<Action> {
        let keys = self.processes.keys().filter(|(owner, _)| *owner == job);
        let keys: Vec<ProcessKey> = keys.map(|&(_, key)| key).collect();
        let mut actions = Vec::new();
        for key in keys {
            actions.extend(self.gone(job, key));
        }
        let attempt = self.job(job).attempts.last().map_or(1, |last| last.number);
        actions.extend(self.feed(Event::Ended { job, attempt, exit }));
        actions
    }

    /// Samples each GPU.
    pub(super) fn sample_all(&mut self) -> Vec<Action> {
        let gpus: Vec<GpuIndex> = self.gpus.iter().map(|gpu| gpu.index).collect();
        gpus.into_iter().flat_map(|gpu| self.sample(gpu)).collect()
    }

    /// Samples a GPU.
    pub(super) fn sample(&mut self, gpu: GpuIndex) -> Vec<Action> {
        let sample = self.reading(gpu);
        self.feed(Event::Sampled { sample })
    }

    /// What NVML says of a GPU now.
    pub(super) fn reading(&self, gpu: GpuIndex) -> GpuSample {
        let mut jobs: BTreeMap<JobId, u64> = BTreeMap::new();
        for (&(job, _), holdings) in &self.processes {
            if let Some(used) = holdings.used.get(&gpu) {
                *jobs.entry(job).or_default() += used + CONTEXT;
            }
        }
        let foreign = self.foreign.get(&gpu).cloned().unwrap_or_default();
        let outside: u64 = foreign.iter().map(|process| process.bytes).sum();
        let busy = self
            .busy
            .get(&gpu)
            .copied()
            .unwrap_or(Some((200, 100, 100)));
        GpuSample {
            gpu,
            sm_active: busy.map(|(active, _, _)| active),
            sm_occupancy: busy.map(|(_, occupancy, _)| occupancy),
            dram_active: busy.map(|(_, _, dram)| dram),
            used: Some(outside + jobs.values().sum::<u64>()),
            foreign,
            jobs: jobs.into_iter().collect(),
        }
    }

    /// A foreign process of that many bytes appears, or, with 0, all vanish.
    pub(super) fn intrude(&mut self, gpu: GpuIndex, bytes: u64) {
        let process = ForeignProcess {
            pid: 4242,
            uid: None,
            command: None,
            bytes,
        };
        let present = if bytes > 0 { vec![process] } else { Vec::new() };
        self.foreign.insert(gpu, present);
        self.sample(gpu);
    }

    /// The job's record.
    pub(super) fn job(&self, job: JobId) -> JobSummary {
        self.core.job(job).expect("a known job")
    }

    /// Its blockers now.
    pub(super) fn blockers(&self, job: JobId) -> Vec<Blocker> {
        self.core.explain(job, Moment(self.now))
    }

    /// Their codes.
    pub(super) fn codes(&self, job: JobId) -> Vec<&'static str> {
        self.blockers(job).iter().map(Blocker::code).collect()
    }

    /// It was given GPUs.
    pub(super) fn is_starting(&self, job: JobId) -> bool {
        self.job(job).state == JobState::Starting
    }

    /// It waits.
    pub(super) fn is_pending(&self, job: JobId) -> bool {
        self.job(job).state == JobState::Pending
    }
}

/// The answer to a request among actions, the last if there are several.
pub(super) fn answer(actions: &[Action], wanted: u64) -> Option<&GrowAnswer> {
    actions.iter().rev().find_map(|action| match action {
        Action::Answer { request, answer } if *request == wanted => Some(answer),
        _ => None,
    })
}
