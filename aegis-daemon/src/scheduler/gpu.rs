//! One GPU's record.

use std::collections::VecDeque;

use aegis_common::event::{ForeignProcess, Gpu, GpuSample};
use aegis_common::id::{JobId, Moment};
use aegis_common::policy::{Policy, Tier};
use serde::{Deserialize, Serialize};

use super::recent::RecentMin;

/// A GPU, present or lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct GpuState {
    pub(super) info: Gpu,
    /// Missing in the last count of the machine.
    pub(super) lost: bool,
    /// Jobs with an attempt in progress here, in the order they came.
    pub(super) residents: Vec<JobId>,
    /// When a resident last came or went.
    pub(super) changed: Moment,
    /// The gate's window, oldest first.
    pub(super) samples: VecDeque<Pressure>,
    /// When the last valid sample was taken.
    pub(super) last_valid: Option<Moment>,
    /// A sample told who is there. Until then the GPU is not known to be idle.
    pub(super) sampled: bool,
    /// Bytes in use by everybody.
    pub(super) used: Option<u64>,
    pub(super) foreign: Vec<ForeignProcess>,
    /// Bytes in use that belong to no process.
    pub(super) unattributed: RecentMin,
    /// Bytes NVML last attributed to each job.
    pub(super) job_bytes: Vec<(JobId, u64)>,
    /// Bytes of jobs that left, which no sample has shown free yet.
    pub(super) settling: u64,
}

/// What one sample says of how busy the GPU is, thousandths; `None` for the activity: invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pressure {
    pub(super) at: Moment,
    pub(super) sm_active: Option<u16>,
    pub(super) sm_occupancy: Option<u16>,
    pub(super) dram_active: Option<u16>,
}

impl GpuState {
    /// A GPU just found.
    pub(super) fn new(info: Gpu, at: Moment) -> Self {
        Self {
            info,
            lost: false,
            residents: Vec::new(),
            changed: at,
            samples: VecDeque::new(),
            last_valid: None,
            sampled: false,
            used: None,
            foreign: Vec::new(),
            unattributed: RecentMin::default(),
            job_bytes: Vec::new(),
            settling: 0,
        }
    }

    /// Samples so far say nothing of now: the GPU takes no job until the next one. Memory last seen
    /// in use stays assumed, because residents' requests go on.
    pub(super) fn distrust_samples(&mut self) {
        self.samples.clear();
        self.last_valid = None;
        self.sampled = false;
    }

    /// Takes a sample; `attributed` are the bytes that residents account for.
    pub(super) fn sample(
        &mut self,
        at: Moment,
        sample: &GpuSample,
        attributed: u64,
        policy: &Policy,
    ) {
        self.sampled = true;
        // A sample without activity may not know who is there: foreign processes stay assumed.
        if sample.sm_active.is_some() || !sample.foreign.is_empty() || self.info.tier == Tier::None
        {
            self.foreign.clone_from(&sample.foreign);
        }
        self.job_bytes.clone_from(&sample.jobs);
        if let Some(used) = sample.used {
            let explained = attributed.saturating_add(self.foreign_bytes());
            let rest = used.saturating_sub(explained);
            let usual = self.unattributed.min(at).unwrap_or(0);
            self.settling = self.settling.min(rest.saturating_sub(usual));
            self.unattributed.push(at, rest - self.settling);
            self.used = Some(used);
        }
        let pressure = Pressure::new(at, sample, self.info.tier);
        if pressure.sm_active.is_some() {
            self.last_valid = Some(at);
        }
        self.samples.push_back(pressure);
        while self.samples.len() > usize::from(policy.gate_window.max(1)) {
            self.samples.pop_front();
        }
    }

    /// Bytes of processes that belong to no job.
    pub(super) fn foreign_bytes(&self) -> u64 {
        let bytes = self.foreign.iter().map(|process| process.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// Bytes used outside AEGIS for good: foreign processes and the driver.
    pub(super) fn outside(&self, now: Moment) -> u64 {
        self.foreign_bytes()
            .saturating_add(self.unattributed.min(now).unwrap_or(0))
    }

    /// Bytes that no resident accounts for: [`Self::outside`], and what departed jobs held until
    /// NVML shows it free.
    pub(super) fn unmanaged(&self, now: Moment) -> u64 {
        self.outside(now).saturating_add(self.settling)
    }

    /// Bytes kept free.
    pub(super) fn guard(&self, policy: &Policy) -> u64 {
        policy.guard_on(self.info.memory)
    }

    /// What NVML last attributed to a job here.
    pub(super) fn bytes_of(&self, job: JobId) -> u64 {
        let found = self.job_bytes.iter().find(|&&(id, _)| id == job);
        found.map_or(0, |&(_, bytes)| bytes)
    }
}

impl Pressure {
    /// The sample's figures, if the tier's are all there: a missing one must never read as idle.
    fn new(at: Moment, sample: &GpuSample, tier: Tier) -> Self {
        let complete = match tier {
            Tier::Gpm | Tier::Dcgm => {
                sample.sm_active.is_some()
                    && sample.sm_occupancy.is_some()
                    && sample.dram_active.is_some()
            }
            Tier::Utilisation => sample.sm_active.is_some(),
            Tier::None => false,
        };
        Self {
            at,
            sm_active: sample.sm_active.filter(|_| complete),
            sm_occupancy: sample.sm_occupancy.filter(|_| complete),
            dram_active: sample.dram_active.filter(|_| complete),
        }
    }
}
