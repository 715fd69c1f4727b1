//! The scheduler core alone: one step with 64 GPUs and 10,000 pending jobs.
//!
//! Every GPU has one resident that was observed and leaves the gate open, so that nothing but memory
//! keeps the pending jobs off: the costliest case, in which no GPU is closed to everybody and every
//! job must be looked at.

use aegis_common::event::{Event, Gpu, GpuSample, ProcessGpu};
use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use aegis_common::job::{Exit, Resources};
use aegis_common::learned::Learned;
use aegis_common::policy::{Policy, Tier};
use aegis_common::{action::Action, job::JobState};
use aegis_daemon::scheduler::Core;
use anyhow::{Result, bail};

use crate::client::resources;
use crate::fleet::{self, GIB, JOBS, USERS};
use crate::host::now_ns;
use crate::stats::{Stats, ms};

const GPUS: u32 = 64;
const GPU_BYTES: u64 = 80 * GIB;
/// What each resident declares and holds: 2.2 GiB are left, less than any pending job needs.
const RESIDENT_BYTES: u64 = 76 * GIB;
const RUNS: u64 = 100;

/// Steps by the event that caused them.
pub(crate) struct Passes {
    /// A further submission that finds no room.
    pub(crate) submitted: Stats,
    /// A sample that changes nothing.
    pub(crate) sampled: Stats,
    /// A resident ends and the first fitting job takes its GPU.
    pub(crate) ended: Stats,
}

impl Passes {
    /// The worst median.
    pub(crate) fn worst(&self) -> Stats {
        let all = [self.submitted, self.sampled, self.ended];
        let worst = all.into_iter().max_by(|a, b| a.median.total_cmp(&b.median));
        worst.unwrap_or(self.submitted)
    }
}

/// Measures.
///
/// # Errors
/// The core did not do what the measurement supposes.
pub(crate) fn measure() -> Result<Passes> {
    let mut machine = Machine::full();
    for number in 1..=JOBS {
        machine.submit(fleet::demand(number));
    }
    if machine.running != GPUS {
        bail!("{} of {GPUS} GPUs are taken", machine.running);
    }
    // Submitting took longer than samples stay fresh.
    machine.sample_all(1);
    let mut submitted = Vec::new();
    for number in 0..RUNS {
        submitted.push(ms(machine.submit(fleet::demand(JOBS + number))));
    }
    let mut sampled = Vec::new();
    for number in 0..RUNS {
        let gpu = GpuIndex(u32::try_from(number % u64::from(GPUS))?);
        sampled.push(ms(machine.sample(gpu, 1)));
    }
    let mut ended = Vec::new();
    for number in 0..u32::try_from(RUNS)?.min(GPUS) {
        let before = machine.running;
        ended.push(ms(machine.end(GpuIndex(number))));
        if machine.running != before {
            bail!("no pending job took GPU {number} when it became free");
        }
    }
    let stats = |values| Stats::of(values).ok_or_else(|| anyhow::anyhow!("nothing was measured"));
    Ok(Passes {
        submitted: stats(submitted)?,
        sampled: stats(sampled)?,
        ended: stats(ended)?,
    })
}

/// A core and the world it believes in.
struct Machine {
    core: Core,
    now: u64,
    next: u64,
    running: u32,
}

impl Machine {
    /// Every GPU has an observed resident.
    fn full() -> Self {
        let mut machine = Self {
            core: Core::new(),
            now: 1_000_000,
            next: 1,
            running: 0,
        };
        machine.step(&Event::Configured {
            policy: Policy::default(),
        });
        let gpus = (0..GPUS).map(|index| Gpu {
            index: GpuIndex(index),
            uuid: format!("GPU-{index}"),
            name: "benchmark".to_owned(),
            memory: GPU_BYTES,
            tier: Tier::Gpm,
            peers: Vec::new(),
        });
        machine.step(&Event::MachineFound {
            gpus: gpus.collect(),
        });
        machine.sample_all(0);
        for _ in 0..GPUS {
            machine.submit(Resources {
                gpu_mem: Some(RESIDENT_BYTES),
                ..resources()
            });
        }
        for number in 1..=u64::from(GPUS) {
            machine.run(JobId(number));
        }
        // Long enough for every observation to end and every window to fill.
        for _ in 0..30 {
            machine.now += 1000;
            machine.sample_all(1);
        }
        machine
    }

    /// The attempt starts, launches and holds its memory.
    fn run(&mut self, job: JobId) {
        let view = self.core.job(job);
        let attempt = view.and_then(|view| view.attempts.last().cloned());
        let Some(attempt) = attempt else { return };
        let process = ProcessKey {
            pid: u32::try_from(job.0).unwrap_or(u32::MAX),
            start_ticks: 1,
        };
        let gpus = attempt.gpus;
        self.step(&Event::Started {
            job,
            attempt: attempt.number,
            gpus: gpus.clone(),
        });
        self.step(&Event::ProcessAttached { job, process });
        self.step(&Event::FirstLaunch { job, process });
        let account = |gpu: &GpuIndex| ProcessGpu {
            gpu: *gpu,
            used: RESIDENT_BYTES,
            inflight: 0,
            nvml: Some(RESIDENT_BYTES + GIB / 4),
            refusal: None,
        };
        self.step(&Event::Usage {
            job,
            process,
            launches: 1000,
            gpus: gpus.iter().map(account).collect(),
        });
    }

    /// One step; how long it took, nanoseconds.
    fn step(&mut self, event: &Event) -> i128 {
        self.now += 1;
        let from = now_ns();
        let actions = self.core.step(Moment(self.now), event);
        let took = now_ns() - from;
        for action in actions {
            match action {
                Action::Start { .. } => self.running += 1,
                Action::Finish { job, .. } => {
                    self.running -= 1;
                    self.core.forget(job);
                }
                _ => {}
            }
        }
        took
    }

    fn submit(&mut self, resources: Resources) -> i128 {
        let number = self.next;
        self.next += 1;
        self.step(&Event::Submitted {
            job: JobId(number),
            uid: u32::try_from(1000 + number % USERS).unwrap_or(1000),
            resources,
            learned: Learned::default(),
        })
    }

    fn sample_all(&mut self, residents: u64) {
        for index in 0..GPUS {
            self.sample(GpuIndex(index), residents);
        }
    }

    /// A sample of a GPU with one busy resident, or none.
    fn sample(&mut self, gpu: GpuIndex, residents: u64) -> i128 {
        let held = residents * (RESIDENT_BYTES + GIB / 4);
        let job = self.resident(gpu);
        let activity = |permille: u16| Some(if residents == 0 { 0 } else { permille });
        self.step(&Event::Sampled {
            sample: GpuSample {
                gpu,
                sm_active: activity(400),
                sm_occupancy: activity(200),
                dram_active: activity(300),
                used: Some(held + GIB / 2),
                foreign: Vec::new(),
                jobs: job.into_iter().map(|job| (job, held)).collect(),
            },
        })
    }

    fn resident(&self, gpu: GpuIndex) -> Option<JobId> {
        let views = self.core.gpus(Moment(self.now));
        let view = views.iter().find(|view| view.index == gpu)?;
        view.residents.first().copied()
    }

    /// The resident of a GPU ends and a sample shows its memory free: the step in which the next
    /// one takes the GPU, whichever it is.
    fn end(&mut self, gpu: GpuIndex) -> i128 {
        let Some(job) = self.resident(gpu) else {
            return 0;
        };
        let Some(JobState::Running { .. }) = self.core.job(job).map(|job| job.state) else {
            return 0;
        };
        let attempt = self.core.job(job).map_or(1, |job| {
            job.attempts.last().map_or(1, |attempt| attempt.number)
        });
        let process = ProcessKey {
            pid: u32::try_from(job.0).unwrap_or(u32::MAX),
            start_ticks: 1,
        };
        self.step(&Event::ProcessGone { job, process });
        let before = self.running;
        let took = self.step(&Event::Ended {
            job,
            attempt,
            exit: Exit::Code(0),
        });
        if self.running == before {
            // It started in the same step as the other ended.
            return took;
        }
        took.max(self.sample(gpu, 0))
    }
}
