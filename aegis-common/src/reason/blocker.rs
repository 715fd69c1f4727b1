//! Why a pending job does not start, one [`Blocker`] per obstacle.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::text::{bytes, permille};
use crate::id::{GpuIndex, JobId};
use crate::job::Phase;

/// One obstacle between a pending job and a GPU (or its start at all), with numbers.
///
/// `Display` states the obstacle; [`Blocker::clears`] states the act or event that removes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Blocker {
    /// Too few GPUs pass every check at once.
    NotEnoughGpus {
        /// GPUs the job needs.
        need: u32,
        /// GPUs that would take it now.
        fit: u32,
    },
    /// Memory: leases, overhead, unmanaged use and guard leave too little.
    GpuMemory {
        /// The GPU.
        gpu: GpuIndex,
        /// Lease and overhead the job needs there, bytes.
        need: u64,
        /// Bytes that can still be promised there.
        available: u64,
        /// Bytes promised to residents (leases and overhead).
        promised: u64,
        /// Bytes used by processes outside AEGIS and by the driver.
        unmanaged: u64,
        /// Bytes kept free.
        guard: u64,
    },
    /// Telemetry says the GPU is busy.
    Pressure {
        /// The GPU.
        gpu: GpuIndex,
        /// Share of time an SM was active, thousandths.
        sm_active: u16,
        /// SM occupancy, thousandths; `None` where the tier has none.
        sm_occupancy: Option<u16>,
        /// Share of time device memory was active, thousandths; `None` where the tier has none.
        dram_active: Option<u16>,
        /// The limit that `sm_active` reached.
        limit: u16,
        /// The limit of `sm_occupancy`; `None` where it does not count.
        #[serde(default)]
        occupancy_limit: Option<u16>,
        /// The limit of `dram_active`; as above.
        #[serde(default)]
        dram_limit: Option<u16>,
    },
    /// One more job would slow the jobs there down by more than it is worth.
    Interference {
        /// The GPU.
        gpu: GpuIndex,
        /// The largest slowdown expected of anybody there, thousandths.
        worst: u32,
        /// Work that would be gained, thousandths of the GPU; negative: lost.
        gain: i32,
        /// What would have to be gained for the slowdown added, thousandths of the GPU.
        needed: i32,
    },
    /// A resident placed there is still under observation.
    Observing {
        /// The GPU.
        gpu: GpuIndex,
        /// The resident.
        job: JobId,
        /// Its phase.
        phase: Phase,
    },
    /// The active telemetry tier has no fresh sample.
    TelemetryStale {
        /// The GPU.
        gpu: GpuIndex,
        /// Milliseconds since the last valid sample; `None`: there was none.
        age_ms: Option<u64>,
    },
    /// The machine gives no utilisation at all: GPUs are not shared.
    NoTelemetry {
        /// The GPU.
        gpu: GpuIndex,
    },
    /// A resident has the GPU to itself.
    HeldExclusively {
        /// The GPU.
        gpu: GpuIndex,
        /// The resident.
        job: JobId,
    },
    /// This job needs the GPU to itself and somebody is there.
    NeedsIdleGpu {
        /// The GPU.
        gpu: GpuIndex,
        /// Residents there.
        residents: Vec<JobId>,
    },
    /// A resident runs without the shim and cannot be bounded.
    Uninstrumented {
        /// The GPU.
        gpu: GpuIndex,
        /// The resident.
        job: JobId,
    },
    /// This job may not be stopped for others, and a resident's peak is not known yet: its growth
    /// could not be served.
    UnprotectedIncumbent {
        /// The GPU.
        gpu: GpuIndex,
        /// The resident.
        job: JobId,
    },
    /// The GPU takes no further jobs by configuration.
    MaxResidents {
        /// The GPU.
        gpu: GpuIndex,
        /// Configured limit.
        limit: u32,
    },
    /// A process outside AEGIS uses the GPU and sharing with such processes is off.
    ForeignProcess {
        /// The GPU.
        gpu: GpuIndex,
        /// The process.
        pid: u32,
        /// Bytes it holds.
        bytes: u64,
    },
    /// Memory use that nobody can deny exceeded what was promised; grants stopped.
    Overdraft {
        /// The GPU.
        gpu: GpuIndex,
        /// Bytes over.
        over: u64,
    },
    /// The GPU stopped answering or was taken out of service.
    GpuLost {
        /// The GPU.
        gpu: GpuIndex,
    },
    /// The GPU is kept for a job further ahead.
    Reserved {
        /// The GPU.
        gpu: GpuIndex,
        /// The job it is kept for.
        job: JobId,
    },
    /// Jobs ahead of this one have not been placed yet in this pass.
    Behind {
        /// How many are ahead.
        ahead: u32,
        /// The next of them.
        next: JobId,
    },
    /// The journal cannot be written: nothing starts until it can.
    JournalUnwritable {
        /// The error.
        error: String,
    },
}

/// Every code, in the order `aegis explain` lists them.
pub const BLOCKER_CODES: [&str; 18] = [
    "journal_unwritable",
    "behind",
    "reserved",
    "not_enough_gpus",
    "gpu_lost",
    "foreign_process",
    "overdraft",
    "held_exclusively",
    "needs_idle_gpu",
    "uninstrumented",
    "unprotected_incumbent",
    "max_residents",
    "no_telemetry",
    "telemetry_stale",
    "observing",
    "gpu_memory",
    "pressure",
    "interference",
];

impl Blocker {
    /// The stable code, as in JSON.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotEnoughGpus { .. } => "not_enough_gpus",
            Self::GpuMemory { .. } => "gpu_memory",
            Self::Pressure { .. } => "pressure",
            Self::Interference { .. } => "interference",
            Self::Observing { .. } => "observing",
            Self::TelemetryStale { .. } => "telemetry_stale",
            Self::NoTelemetry { .. } => "no_telemetry",
            Self::HeldExclusively { .. } => "held_exclusively",
            Self::NeedsIdleGpu { .. } => "needs_idle_gpu",
            Self::Uninstrumented { .. } => "uninstrumented",
            Self::UnprotectedIncumbent { .. } => "unprotected_incumbent",
            Self::MaxResidents { .. } => "max_residents",
            Self::ForeignProcess { .. } => "foreign_process",
            Self::Overdraft { .. } => "overdraft",
            Self::GpuLost { .. } => "gpu_lost",
            Self::Reserved { .. } => "reserved",
            Self::Behind { .. } => "behind",
            Self::JournalUnwritable { .. } => "journal_unwritable",
        }
    }

    /// The act or event that removes this obstacle.
    #[must_use]
    pub fn clears(&self) -> String {
        match self {
            Self::NotEnoughGpus { need, .. } => {
                format!(
                    "clears when {need} GPUs pass the checks below, or submit with fewer --gpus"
                )
            }
            Self::GpuMemory {
                need, available, ..
            } => format!(
                "clears when {} more is released there, or submit with a smaller --gpu-mem",
                bytes(need.saturating_sub(*available))
            ),
            Self::Pressure {
                limit,
                occupancy_limit,
                dram_limit,
                ..
            } => {
                let sm = format!("clears when SM activity falls below {}", permille(*limit));
                match (occupancy_limit, dram_limit) {
                    (Some(occupancy), Some(dram)) => format!(
                        "{sm}, or SM occupancy below {} and DRAM activity below {}",
                        permille(*occupancy),
                        permille(*dram)
                    ),
                    _ => sm,
                }
            }
            Self::Interference { gpu, .. } => format!(
                "clears when a job on GPU {gpu} ends; a more eager `mode` in the configuration shares more"
            ),
            Self::Observing { job, phase, .. } => match phase {
                Phase::WarmUp => {
                    format!("clears once job {job} has launched kernels and was observed")
                }
                _ => format!("clears when the observation of job {job} ends"),
            },
            Self::TelemetryStale { .. } => {
                "clears with the next valid sample; see `aegis doctor`".to_owned()
            }
            Self::NoTelemetry { .. } => {
                "clears when the GPU is idle; sharing needs NVML utilisation, see `aegis doctor`"
                    .to_owned()
            }
            Self::HeldExclusively { job, .. } => {
                format!("clears when job {job} ends: `aegis cancel {job}` if it is yours")
            }
            Self::NeedsIdleGpu { .. } => "clears when the residents end".to_owned(),
            Self::Uninstrumented { job, .. } => {
                format!("clears when job {job} ends or a process of it loads the shim")
            }
            Self::UnprotectedIncumbent { job, .. } => format!(
                "clears when the peak of job {job} is declared or learned, or submit with --requeue"
            ),
            Self::MaxResidents { .. } => {
                "clears when a resident ends, or raise scheduler.max_residents".to_owned()
            }
            Self::ForeignProcess { pid, .. } => format!("clears when process {pid} ends"),
            Self::Overdraft { over, .. } => {
                format!("clears when {} is released there", bytes(*over))
            }
            Self::GpuLost { .. } => {
                "clears when NVML sees the GPU again; see `aegis doctor`".to_owned()
            }
            Self::Reserved { job, .. } => format!("clears when job {job} has started"),
            Self::Behind { next, .. } => format!("clears when job {next} has started or ended"),
            Self::JournalUnwritable { .. } => {
                "clears when the state directory can be written: free disk space there".to_owned()
            }
        }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEnoughGpus { need, fit } => {
                write!(f, "needs {need} GPUs at once, {fit} would take it now")
            }
            Self::GpuMemory {
                gpu,
                need,
                available,
                promised,
                unmanaged,
                guard,
            } => write!(
                f,
                "GPU {gpu}: needs {}, {} available ({} promised to jobs, {} used outside AEGIS, {} guard)",
                bytes(*need),
                bytes(*available),
                bytes(*promised),
                bytes(*unmanaged),
                bytes(*guard)
            ),
            Self::Pressure {
                gpu,
                sm_active,
                sm_occupancy,
                dram_active,
                limit,
                occupancy_limit,
                dram_limit,
            } => {
                write!(f, "GPU {gpu}: busy")?;
                for (name, value, limit) in [
                    ("SM activity", Some(*sm_active), Some(*limit)),
                    ("SM occupancy", *sm_occupancy, *occupancy_limit),
                    ("DRAM activity", *dram_active, *dram_limit),
                ] {
                    let Some(value) = value else { continue };
                    write!(f, ", {name} {}", permille(value))?;
                    if let Some(limit) = limit {
                        write!(f, " (limit {})", permille(limit))?;
                    }
                }
                Ok(())
            }
            Self::Interference {
                gpu,
                worst,
                gain,
                needed,
            } => write!(
                f,
                "GPU {gpu}: with one more job somebody there is expected to run {}.{:02} times as long as alone; \
                 work gained {}.{} %, needed {}.{} %",
                worst / 1000,
                worst % 1000 / 10,
                gain / 10,
                (gain % 10).abs(),
                needed / 10,
                (needed % 10).abs()
            ),
            Self::Observing { gpu, job, phase } => match phase {
                Phase::WarmUp => write!(
                    f,
                    "GPU {gpu}: job {job} was placed there and has not launched yet"
                ),
                _ => write!(f, "GPU {gpu}: job {job} is under observation"),
            },
            Self::TelemetryStale {
                gpu,
                age_ms: Some(age),
            } => {
                write!(f, "GPU {gpu}: last valid telemetry sample is {age} ms old")
            }
            Self::TelemetryStale { gpu, age_ms: None } => {
                write!(f, "GPU {gpu}: no valid telemetry sample yet")
            }
            Self::NoTelemetry { gpu } => {
                write!(
                    f,
                    "GPU {gpu}: occupied, and no telemetry tells how busy it is"
                )
            }
            Self::HeldExclusively { gpu, job } => {
                write!(f, "GPU {gpu}: held exclusively by job {job}")
            }
            Self::NeedsIdleGpu { gpu, residents } => {
                write!(
                    f,
                    "GPU {gpu}: this job needs it to itself, and it holds job"
                )?;
                for (position, job) in residents.iter().enumerate() {
                    write!(f, "{} {job}", if position == 0 { "" } else { "," })?;
                }
                Ok(())
            }
            Self::Uninstrumented { gpu, job } => {
                write!(
                    f,
                    "GPU {gpu}: job {job} uses it without the shim and cannot be bounded"
                )
            }
            Self::UnprotectedIncumbent { gpu, job } => write!(
                f,
                "GPU {gpu}: this job may not be stopped for others, and the peak of job {job} is unknown"
            ),
            Self::MaxResidents { gpu, limit } => {
                write!(f, "GPU {gpu}: holds {limit} jobs, the configured maximum")
            }
            Self::ForeignProcess {
                gpu,
                pid,
                bytes: held,
            } => {
                write!(
                    f,
                    "GPU {gpu}: process {pid} outside AEGIS holds {}",
                    bytes(*held)
                )
            }
            Self::Overdraft { gpu, over } => {
                write!(f, "GPU {gpu}: {} more in use than promised", bytes(*over))
            }
            Self::GpuLost { gpu } => write!(f, "GPU {gpu}: does not answer"),
            Self::Reserved { gpu, job } => write!(f, "GPU {gpu}: kept for job {job}"),
            Self::Behind { ahead, next } => {
                write!(f, "{ahead} jobs are ahead, the next is job {next}")
            }
            Self::JournalUnwritable { error } => {
                write!(f, "the journal cannot be written: {error}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As stored before the limits of occupancy and DRAM activity were.
    const OLD: &str = r#"{"code":"pressure","gpu":0,"sm_active":640,"sm_occupancy":310,"dram_active":null,"limit":550}"#;

    #[test]
    fn pressure_states_each_limit_and_both_ways_out() {
        let old: Blocker = serde_json::from_str(OLD).unwrap();
        assert_eq!(
            old.to_string(),
            "GPU 0: busy, SM activity 64.0 % (limit 55.0 %), SM occupancy 31.0 %"
        );
        assert_eq!(old.clears(), "clears when SM activity falls below 55.0 %");
        let pressure = Blocker::Pressure {
            gpu: GpuIndex(0),
            sm_active: 640,
            sm_occupancy: Some(310),
            dram_active: Some(120),
            limit: 550,
            occupancy_limit: Some(250),
            dram_limit: Some(400),
        };
        assert_eq!(
            pressure.to_string(),
            "GPU 0: busy, SM activity 64.0 % (limit 55.0 %), SM occupancy 31.0 % (limit 25.0 %), \
             DRAM activity 12.0 % (limit 40.0 %)"
        );
        assert_eq!(
            pressure.clears(),
            "clears when SM activity falls below 55.0 %, or SM occupancy below 25.0 % and DRAM \
             activity below 40.0 %"
        );
    }
}
