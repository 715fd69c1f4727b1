//! What every published policy keeps: the queue in arrival order, GPUs, residents, ended attempts.

use std::collections::{BTreeMap, VecDeque};

use aegis_common::action::Action;
use aegis_common::event::{self, Event};
use aegis_common::id::{GpuIndex, JobId};
use aegis_common::job::{Exit, Outcome};
use aegis_common::policy::Tier;
use aegis_common::reason::RetryReason;

use super::{Profile, Profiles};

/// Attempts after which a job that keeps failing is given up: a guard, no published rule.
const MAX_ATTEMPTS: u32 = 20;

/// Queue and machine.
pub(super) struct Board {
    /// Jobs that never ran, as they came.
    pub(super) queue: VecDeque<JobId>,
    /// Jobs whose last attempt failed, as they failed.
    pub(super) recovering: VecDeque<JobId>,
    /// By index.
    pub(super) gpus: BTreeMap<GpuIndex, Gpu>,
    jobs: BTreeMap<JobId, Job>,
    profiles: Profiles,
}

/// One GPU.
pub(super) struct Gpu {
    pub(super) memory: u64,
    pub(super) tier: Tier,
    /// Bytes in use at the last sample that told.
    pub(super) used: Option<u64>,
    /// As they were started.
    pub(super) residents: Vec<JobId>,
}

/// One job that is not over.
#[derive(Clone)]
pub(super) struct Job {
    /// How many GPUs it asks for.
    pub(super) gpus: usize,
    pub(super) profile: Profile,
    /// The attempt in progress, or the coming one.
    attempt: u32,
    /// Where it runs; empty while it waits.
    pub(super) on: Vec<GpuIndex>,
}

impl Board {
    pub(super) fn new(profiles: Profiles) -> Self {
        Self {
            queue: VecDeque::new(),
            recovering: VecDeque::new(),
            gpus: BTreeMap::new(),
            jobs: BTreeMap::new(),
            profiles,
        }
    }

    /// Takes an event. Ended attempts are finished (exit code 0) or queued for recovery: traces
    /// know no failure but the lack of memory, which the artifact reads from the job's log, and
    /// nobody cancels.
    pub(super) fn take(&mut self, event: &Event, out: &mut Vec<Action>) {
        match event {
            Event::MachineFound { gpus } => self.machine_found(gpus),
            Event::Submitted { job, resources, .. } => {
                self.submitted(*job, resources.gpus as usize, out);
            }
            Event::Sampled { sample } => {
                if let Some(gpu) = self.gpus.get_mut(&sample.gpu) {
                    gpu.used = sample.used.or(gpu.used);
                }
            }
            Event::Ended { job, exit, .. } => self.ended(*job, *exit, out),
            Event::StartFailed { job, error, .. } => {
                let error = error.clone();
                self.finish(*job, Outcome::StartFailed { error }, out);
            }
            _ => {}
        }
    }

    fn machine_found(&mut self, gpus: &[event::Gpu]) {
        for gpu in gpus {
            let entry = self.gpus.entry(gpu.index).or_insert_with(|| Gpu {
                memory: 0,
                tier: Tier::None,
                used: None,
                residents: Vec::new(),
            });
            entry.memory = gpu.memory;
            entry.tier = gpu.tier;
        }
    }

    fn submitted(&mut self, id: JobId, gpus: usize, out: &mut Vec<Action>) {
        if gpus > self.gpus.len() {
            let error = format!("{gpus} GPUs asked for, {} there", self.gpus.len());
            let outcome = Outcome::StartFailed { error };
            out.push(Action::Finish { job: id, outcome });
            return;
        }
        let profile = self.profiles.get(&id).copied().unwrap_or(Profile::UNKNOWN);
        let job = Job {
            gpus,
            profile,
            attempt: 1,
            on: Vec::new(),
        };
        self.jobs.insert(id, job);
        self.queue.push_back(id);
    }

    fn ended(&mut self, id: JobId, exit: Exit, out: &mut Vec<Action>) {
        self.leave(id);
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        if exit == Exit::Code(0) {
            self.finish(id, Outcome::Ok, out);
        } else if job.attempt >= MAX_ATTEMPTS {
            self.finish(id, Outcome::Failed { exit }, out);
        } else {
            let gpu = job.on.first().copied().unwrap_or(GpuIndex(0));
            job.on.clear();
            job.attempt += 1;
            self.recovering.push_back(id);
            // The log tells that memory was lacking, not how much.
            let why = RetryReason::Oom {
                gpu,
                request: 0,
                peak: 0,
                floor: 0,
                exclusive: false,
            };
            out.push(Action::Retry {
                job: id,
                attempt: job.attempt,
                why,
            });
        }
    }

    fn leave(&mut self, id: JobId) {
        for gpu in self.gpus.values_mut() {
            gpu.residents.retain(|&resident| resident != id);
        }
    }

    fn finish(&mut self, id: JobId, outcome: Outcome, out: &mut Vec<Action>) {
        self.leave(id);
        self.queue.retain(|&queued| queued != id);
        self.recovering.retain(|&queued| queued != id);
        if self.jobs.remove(&id).is_some() {
            out.push(Action::Finish { job: id, outcome });
        }
    }

    /// Starts a waiting job there.
    pub(super) fn start(&mut self, id: JobId, gpus: Vec<GpuIndex>, out: &mut Vec<Action>) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        self.queue.retain(|&queued| queued != id);
        self.recovering.retain(|&queued| queued != id);
        for gpu in &gpus {
            if let Some(gpu) = self.gpus.get_mut(gpu) {
                gpu.residents.push(id);
            }
        }
        job.on.clone_from(&gpus);
        out.push(Action::Start {
            job: id,
            attempt: job.attempt,
            gpus,
            virtual_total: None,
        });
    }

    /// A job that is not over.
    pub(super) fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id)
    }

    /// The jobs that run, by number.
    pub(super) fn running(&self) -> impl Iterator<Item = (JobId, &Job)> {
        let running = self.jobs.iter().filter(|(_, job)| !job.on.is_empty());
        running.map(|(&id, job)| (id, job))
    }

    /// The offline profiles of those who run on a GPU.
    pub(super) fn profiles<'a>(&'a self, gpu: &'a Gpu) -> impl Iterator<Item = Profile> + 'a {
        let jobs = gpu.residents.iter().filter_map(|id| self.jobs.get(id));
        jobs.map(|job| job.profile)
    }

    /// GPUs without residents, by index.
    pub(super) fn idle(&self) -> Vec<GpuIndex> {
        let idle = self.gpus.iter().filter(|(_, gpu)| gpu.residents.is_empty());
        idle.map(|(&index, _)| index).collect()
    }
}

/// The first `count` of them; `None` if there are fewer.
pub(super) fn first(mut gpus: Vec<GpuIndex>, count: usize) -> Option<Vec<GpuIndex>> {
    (gpus.len() >= count).then(|| {
        gpus.truncate(count);
        gpus
    })
}
