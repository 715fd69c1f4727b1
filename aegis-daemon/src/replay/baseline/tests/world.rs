//! A machine told by hand.

use aegis_common::action::Action;
use aegis_common::event::{Event, Gpu, GpuSample};
use aegis_common::id::{GpuIndex, JobId, Moment};
use aegis_common::job::{Exit, Outcome, Resources};
use aegis_common::policy::Tier;

use super::super::{Profile, Profiles, Scheduler, named};

const GIB: u64 = 1 << 30;

/// Utilisation in thousandths, score, peak in GiB, predicted seconds.
pub(super) type Figures = (u32, u32, u64, u64);

pub(super) struct World {
    scheduler: Box<dyn Scheduler + Send>,
    pub(super) now: Moment,
    pub(super) finished: Vec<JobId>,
}

impl World {
    /// GPUs of 40 GiB; job 1 has the first figures, job 2 the second, …
    pub(super) fn new(name: &str, gpus: u32, jobs: &[Figures]) -> Self {
        let profiles: Profiles = (1..)
            .zip(jobs)
            .map(|(id, &(utilisation, score, peak, predicted_s))| {
                let peak = peak * GIB;
                let profile = Profile {
                    utilisation,
                    score,
                    peak,
                    predicted_s,
                };
                (JobId(id), profile)
            })
            .collect();
        let mut world = Self {
            scheduler: named(name, &profiles).unwrap(),
            now: Moment(0),
            finished: Vec::new(),
        };
        let gpu = |index| Gpu {
            index: GpuIndex(index),
            uuid: format!("GPU-{index}"),
            name: "A100".into(),
            memory: 40 * GIB,
            tier: Tier::Dcgm,
            peers: Vec::new(),
        };
        world.tell(Event::MachineFound {
            gpus: (0..gpus).map(gpu).collect(),
        });
        world
    }

    /// Starts as (job, attempt, GPUs), with wake-ups followed for the next `seconds`.
    pub(super) fn after(&mut self, seconds: u64, event: Event) -> Vec<(u64, u32, Vec<u32>)> {
        let mut started = self.tell(event);
        for _ in 0..seconds {
            self.now = self.now.plus_millis(1_000);
            started.extend(self.tell(Event::Woken));
        }
        started
    }

    pub(super) fn tell(&mut self, event: Event) -> Vec<(u64, u32, Vec<u32>)> {
        let mut started = Vec::new();
        for action in self.scheduler.step(self.now, &event) {
            match action {
                Action::Start {
                    job, attempt, gpus, ..
                } => started.push((job.0, attempt, gpus.iter().map(|gpu| gpu.0).collect())),
                Action::Finish { job, outcome } => {
                    assert_eq!(outcome, Outcome::Ok);
                    self.finished.push(job);
                }
                _ => {}
            }
        }
        started
    }

    pub(super) fn submit(&mut self, job: u64, gpus: u32) -> Vec<(u64, u32, Vec<u32>)> {
        self.after(2, submitted(job, gpus))
    }

    pub(super) fn end(&mut self, job: u64, code: i32) -> Vec<(u64, u32, Vec<u32>)> {
        let (job, exit) = (JobId(job), Exit::Code(code));
        let attempt = 1;
        self.after(2, Event::Ended { job, attempt, exit })
    }

    /// `seconds` samples of a GPU with these jobs, so busy, so full.
    pub(super) fn observe(
        &mut self,
        seconds: u64,
        gpu: u32,
        jobs: &[u64],
        pressure: [u16; 3],
        used: u64,
    ) -> Vec<(u64, u32, Vec<u32>)> {
        let mut started = Vec::new();
        for _ in 0..seconds {
            let sample = GpuSample {
                gpu: GpuIndex(gpu),
                sm_active: Some(pressure[0]),
                sm_occupancy: Some(pressure[1]),
                dram_active: Some(pressure[2]),
                used: Some(used * GIB),
                foreign: Vec::new(),
                jobs: jobs.iter().map(|&job| (JobId(job), GIB)).collect(),
            };
            started.extend(self.after(1, Event::Sampled { sample }));
        }
        started
    }
}

/// A job of uid 0 with no wishes.
pub(super) fn submitted(job: u64, gpus: u32) -> Event {
    Event::Submitted {
        job: JobId(job),
        uid: 0,
        resources: Resources {
            gpus,
            gpu_mem: None,
            priority: 0,
            exclusive: false,
            requeue: true,
            retries: 0,
            time_limit_s: None,
            on_suspend: None,
        },
        learned: aegis_common::learned::Learned::default(),
    }
}
