//! One NVML session: from initialising the library to its failure.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nvml_wrapper::{Device, Nvml};
use tokio::sync::mpsc::UnboundedSender;

use super::device::{self, Activity, Failure, GPM_SPAN_MIN, Meter, Reading};
use super::event::{GpuFound, RawSample, TelemetryEvent};
use super::found::{Indices, count};
use super::processes::ListCall;
use super::schedule::{Due, Intervals, Schedule};
use super::thread::{Command, TelemetryConfig, open};

/// How often GPUs that do not answer are looked for.
const RECOUNT: Duration = Duration::from_secs(60);
/// Readings without memory figures in a row after which a GPU counts as lost.
const SILENT_MAX: u32 = 8;

/// Why a session ended.
pub(super) enum Ended {
    /// Nobody wants telemetry any more.
    Stopped,
    /// The GPUs are to be counted again.
    Recount,
    /// NVML cannot be used.
    Failed(String),
}

/// What outlives a session.
pub(super) struct Memory {
    pub(super) active: bool,
    pub(super) indices: Indices,
    /// The list last told to the owner; `None` if it must be told in any case.
    pub(super) told: Option<Vec<GpuFound>>,
}

/// Value and when it was read.
type Read<T> = Option<(Instant, T)>;

struct Gpu<'nvml> {
    device: Device<'nvml>,
    found: GpuFound,
    meter: Meter<'nvml>,
    used: Option<u64>,
    silent: u32,
    activity: Read<Activity>,
    /// The meter has taken the first of two samples: the second one follows at once.
    half_read: bool,
    processes: Read<Vec<(u32, u64)>>,
    told: Option<RawSample>,
}

/// Runs a session to its end.
pub(super) fn run(
    config: &TelemetryConfig,
    memory: &mut Memory,
    commands: &Receiver<Command>,
    events: &UnboundedSender<TelemetryEvent>,
) -> Ended {
    let nvml = match open(config.nvml_library.as_deref()) {
        Ok(nvml) => nvml,
        Err(error) => return Ended::Failed(error.to_string()),
    };
    let counted = match count(&nvml, &mut memory.indices) {
        Ok(counted) => counted,
        Err(error) => return Ended::Failed(error.to_string()),
    };
    let driver = nvml.sys_driver_version().unwrap_or_default();
    let mut now = Instant::now();
    let mut session = Session {
        events,
        call: ListCall::for_driver(&driver),
        intervals: config.intervals(),
        schedule: Schedule::new(config.intervals(), memory.active, now),
        gpus: counted
            .gpus
            .into_iter()
            .map(|(device, found)| Gpu::new(&nvml, device, found))
            .collect(),
    };
    let mut recount = (counted.missing > 0).then(|| now + RECOUNT);
    session.tell_gpus(&mut memory.told);
    loop {
        let due = session.schedule.take_due(now);
        match session.read_all(due, now) {
            Ok(0) => {}
            Ok(_lost) => {
                session.tell_gpus(&mut memory.told);
                recount = recount.or(Some(now + RECOUNT));
            }
            Err(error) => return Ended::Failed(error),
        }
        if recount.is_some_and(|at| now >= at) {
            return Ended::Recount;
        }
        let pause = session.schedule.pause(Instant::now());
        match commands.recv_timeout(pause) {
            Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return Ended::Stopped,
            Ok(Command::Refresh) => session.schedule.refresh(Instant::now()),
            Ok(Command::Active(active)) => {
                memory.active = active;
                session.schedule.set_active(active, Instant::now());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        now = Instant::now();
    }
}

struct Session<'nvml, 'a> {
    events: &'a UnboundedSender<TelemetryEvent>,
    call: ListCall,
    intervals: Intervals,
    schedule: Schedule,
    gpus: Vec<Gpu<'nvml>>,
}

impl Session<'_, '_> {
    /// Tells the owner which GPUs there are, unless it knows.
    fn tell_gpus(&self, told: &mut Option<Vec<GpuFound>>) {
        let gpus: Vec<GpuFound> = self.gpus.iter().map(|gpu| gpu.found.clone()).collect();
        if told.as_ref() != Some(&gpus) {
            *told = Some(gpus.clone());
            self.tell(TelemetryEvent::Gpus(gpus));
        }
    }

    fn tell(&self, event: TelemetryEvent) {
        // The owner is gone only when the daemon ends; the next command tells.
        let _ = self.events.send(event);
    }

    /// Reads what is due of all GPUs and tells the owner. Returns how many were lost.
    fn read_all(&mut self, due: Due, now: Instant) -> Result<usize, String> {
        if !due.any() {
            return Ok(0);
        }
        let mut lost = Vec::new();
        for gpu in &mut self.gpus {
            match gpu.read(due, self.call, now) {
                Ok(()) => {}
                Err(Failure::Library(error)) => return Err(error.to_string()),
                Err(Failure::Gpu(error)) => {
                    let gpu = &gpu.found;
                    tracing::warn!(index = %gpu.index, uuid = gpu.uuid, %error, "GPU lost");
                    lost.push(gpu.index);
                }
                Err(Failure::Value) => {
                    let gpu = &gpu.found;
                    tracing::warn!(index = %gpu.index, uuid = gpu.uuid, "GPU silent");
                    lost.push(gpu.index);
                }
            }
        }
        self.gpus.retain(|gpu| !lost.contains(&gpu.found.index));
        if self.gpus.iter().any(|gpu| gpu.half_read) {
            let soon = GPM_SPAN_MIN + GPM_SPAN_MIN / 5;
            self.schedule.activity_after(now, soon);
        }
        let fresh = Fresh {
            now,
            activity: self.schedule.fresh_for(self.intervals.activity),
            processes: self.schedule.fresh_for(self.intervals.processes),
        };
        for gpu in &mut self.gpus {
            if gpu.half_read {
                // Without activity it would look like a failed reading.
                continue;
            }
            let sample = gpu.sample(fresh);
            if due.activity || due.asked || gpu.told.as_ref() != Some(&sample) {
                gpu.told = Some(sample.clone());
                // As `tell`, which would borrow all of `self`.
                let _ = self.events.send(TelemetryEvent::Sample(sample));
            }
        }
        Ok(lost.len())
    }
}

#[derive(Clone, Copy)]
struct Fresh {
    now: Instant,
    activity: Duration,
    processes: Duration,
}

impl<'nvml> Gpu<'nvml> {
    fn new(nvml: &'nvml Nvml, device: Device<'nvml>, found: GpuFound) -> Self {
        Self {
            device,
            meter: Meter::new(nvml, found.tier),
            found,
            used: None,
            silent: 0,
            activity: None,
            half_read: false,
            processes: None,
            told: None,
        }
    }

    fn read(&mut self, due: Due, call: ListCall, now: Instant) -> Result<(), Failure> {
        if due.memory {
            self.used = device::used(&self.device)?;
            self.silent = if self.used.is_some() {
                0
            } else {
                self.silent + 1
            };
            if self.silent >= SILENT_MAX {
                return Err(Failure::Value);
            }
        }
        if due.activity {
            match self.meter.read(&self.device, now)? {
                Reading::Activity(activity) => {
                    self.activity = Some((now, activity));
                    self.half_read = false;
                }
                Reading::First => self.half_read = true,
            }
        }
        if due.processes {
            let list = device::processes(&self.device, call)?;
            self.processes = list.map(|list| (now, list));
        }
        Ok(())
    }

    fn sample(&self, fresh: Fresh) -> RawSample {
        let activity = if_fresh(&self.activity, fresh.now, fresh.activity).copied();
        let activity = activity.unwrap_or_default();
        RawSample {
            gpu: self.found.index,
            sm_active: activity.sm_active,
            sm_occupancy: activity.sm_occupancy,
            dram_active: activity.dram_active,
            used: self.used,
            processes: if_fresh(&self.processes, fresh.now, fresh.processes).cloned(),
        }
    }
}

fn if_fresh<T>(read: &Read<T>, now: Instant, fresh_for: Duration) -> Option<&T> {
    let (at, value) = read.as_ref()?;
    (now.saturating_duration_since(*at) <= fresh_for).then_some(value)
}
