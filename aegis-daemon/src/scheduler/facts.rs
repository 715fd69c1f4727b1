//! What about a GPU matters to placement, computed once per pass over the queue.

use aegis_common::id::{GpuIndex, JobId, Moment};
use aegis_common::job::Phase;
use aegis_common::policy::Tier;

use super::budget::Room;
use super::core::Core;
use super::gate::{Verdict, figures, judge};
use super::gpu::GpuState;
use super::interference::Load;

/// A GPU as the placement sees it.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) gpu: GpuIndex,
    pub(super) memory: u64,
    pub(super) lost: bool,
    /// A sample told who is there.
    pub(super) sampled: bool,
    /// The first foreign process, if the policy does not share with such.
    pub(super) barred_by: Option<(u32, u64)>,
    /// Some foreign process is there.
    pub(super) foreign: bool,
    /// Residents by seniority.
    pub(super) residents: Vec<JobId>,
    pub(super) exclusive: Option<JobId>,
    /// A resident without the shim.
    pub(super) uninstrumented: Option<JobId>,
    /// Residents that may grow beyond what is promised to them: no cap, and neither a known peak nor
    /// one observed here lies within their budget.
    pub(super) unprotected: Vec<JobId>,
    /// Residents that close the GPU while they are observed; where loads are weighed, not those
    /// whose load is known.
    pub(super) observing: Vec<(JobId, Phase)>,
    /// The only dormant resident.
    pub(super) dormant: Option<JobId>,
    /// The configured number of residents is reached.
    pub(super) full: Option<u32>,
    /// Occupied, and the tier says nothing.
    pub(super) blind: bool,
    /// What the gate says, where it applies.
    pub(super) gate: Option<Verdict>,
    /// What the residents ask of the GPU, where the policy weighs it.
    pub(super) loads: Vec<Load>,
    /// Predicted slowdowns decide here, not the gate.
    pub(super) weighed: bool,
    /// Risk figure of SM activity.
    pub(super) sm_active: u16,
    /// Room after what waiting requests need; negative: overdrawn.
    pub(super) room: Room,
    /// Bytes of departed jobs among the unmanaged ones: the next sample should show them free.
    pub(super) settling: u64,
    /// Bytes overdrawn.
    pub(super) over: u64,
    pub(super) promised: u64,
    pub(super) unmanaged: u64,
    /// Bytes of it that belong to nobody here for good.
    pub(super) outside: u64,
    pub(super) guard: u64,
    /// The job it is kept for, and the end of the first resident that delays it.
    pub(super) reserved: Option<(JobId, Option<Moment>)>,
    pub(super) at: Moment,
}

impl Facts {
    /// As the next sample should show it.
    pub(super) fn settled(&self) -> Self {
        let mut facts = self.clone();
        facts.room += Room::from(facts.settling);
        facts.over = facts.over.saturating_sub(facts.settling);
        facts
    }
}

impl Core {
    /// A GPU at a moment not before the last step.
    pub(super) fn facts(&self, gpu: &GpuState, at: Moment) -> Facts {
        let index = gpu.info.index;
        let mut facts = Facts {
            gpu: index,
            memory: gpu.info.memory,
            lost: gpu.lost,
            sampled: gpu.sampled,
            barred_by: gpu
                .foreign
                .first()
                .filter(|_| !self.policy.share_with_foreign)
                .map(|process| (process.pid, process.bytes)),
            foreign: !gpu.foreign.is_empty(),
            residents: gpu.residents.clone(),
            exclusive: None,
            uninstrumented: None,
            unprotected: Vec::new(),
            observing: Vec::new(),
            dormant: None,
            full: None,
            blind: false,
            gate: None,
            loads: Vec::new(),
            weighed: false,
            sm_active: 0,
            room: self.room(gpu) - self.awaited(index),
            settling: gpu.settling,
            over: u64::try_from(-self.room(gpu)).unwrap_or(0),
            promised: self.promised(gpu),
            unmanaged: gpu.unmanaged(self.now),
            outside: gpu.outside(self.now),
            guard: gpu.guard(&self.policy),
            reserved: self.reserved(index),
            at,
        };
        facts
            .residents
            .sort_by_key(|id| self.jobs.get(id).map(|job| job.seniority()));
        self.describe_residents(&mut facts);
        let limit = self.policy.max_residents;
        let residents = u32::try_from(facts.residents.len()).unwrap_or(u32::MAX);
        facts.full = (limit > 0 && residents >= limit).then_some(limit);
        let occupied = !facts.residents.is_empty() || facts.foreign;
        facts.blind = occupied && gpu.info.tier == Tier::None;
        let since = self.gate_since(gpu);
        if occupied && !facts.blind {
            let verdict = judge(
                &gpu.samples,
                gpu.last_valid,
                since,
                gpu.info.tier,
                at,
                &self.policy,
            );
            facts.gate = Some(verdict);
        }
        if self.policy.weighs(gpu.info.tier) {
            facts.weighed = true;
            facts.loads = self.loads(&facts.residents, index);
        }
        let figures = figures(&gpu.samples, since, &self.policy);
        facts.sm_active = figures.map_or(0, |figures| figures.sm_active);
        facts
    }

    fn describe_residents(&self, facts: &mut Facts) {
        let mut dormant = Vec::new();
        for &id in &facts.residents {
            let Some((job, run)) = self.job_and_run(id) else {
                continue;
            };
            let Some(hold) = run.hold(facts.gpu) else {
                continue;
            };
            if hold.exclusive {
                facts.exclusive = Some(id);
            }
            if run.uninstrumented() {
                facts.uninstrumented = Some(id);
            }
            let declared = hold.cap.is_some() || job.known_peak().is_some_and(|p| hold.budget >= p);
            let learned = run.observation.observed() && hold.budget >= hold.peak;
            if !declared && !learned {
                facts.unprotected.push(id);
            }
            match run.observation.phase_at(facts.at, &self.policy) {
                Phase::Steady => {}
                Phase::Dormant => dormant.push(id),
                phase => facts.observing.push((id, phase)),
            }
        }
        if let [only] = dormant[..] {
            facts.dormant = Some(only);
        } else {
            let dormant = dormant.into_iter().map(|id| (id, Phase::Dormant));
            facts.observing.extend(dormant);
        }
    }

    /// From when on samples tell of the present residents in training.
    pub(super) fn gate_since(&self, gpu: &GpuState) -> Moment {
        let settled = gpu.residents.iter().filter_map(|&id| {
            let (_, run) = self.job_and_run(id)?;
            run.observation.settled_from(&self.policy)
        });
        settled.fold(gpu.changed, Moment::max)
    }
}
