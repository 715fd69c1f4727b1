//! What must hold after each step, from what the outside can know and from the core's own figures.

use std::collections::{BTreeMap, BTreeSet};

use aegis_common::action::{Action, GrowAnswer};
use aegis_common::event::Event;
use aegis_common::id::{GpuIndex, JobId, ProcessKey};
use aegis_common::reason::StopReason;

use super::world::{CONTEXT, GIB, MIB};
use crate::scheduler::Core;

/// What the checks remember.
#[derive(Default)]
pub(super) struct Checks {
    limits: BTreeMap<(ProcessKey, GpuIndex), u64>,
    /// Unanswered requests: job and GPU.
    open: BTreeMap<u64, (JobId, GpuIndex)>,
    running: BTreeMap<JobId, u32>,
    attempts: BTreeMap<JobId, u32>,
    floors: BTreeMap<JobId, u64>,
    /// Foreign bytes as last sampled.
    foreign: BTreeMap<GpuIndex, u64>,
    journal_broken: bool,
}

impl Checks {
    /// Jobs with an attempt in progress.
    pub(super) fn running(&self) -> Vec<JobId> {
        self.running.keys().copied().collect()
    }

    /// Requests without a final answer.
    pub(super) fn open_requests(&self) -> Vec<u64> {
        self.open.keys().copied().collect()
    }

    /// The daemon restarts: connections are gone, and limits are set anew.
    pub(super) fn restarted(&mut self) {
        self.open.clear();
        self.limits.clear();
        self.journal_broken = false;
    }

    /// Checks a step.
    pub(super) fn step(&mut self, core: &Core, event: &Event, actions: &[Action]) {
        self.note(event);
        for action in actions {
            self.action(core, event, action);
        }
        self.state(core, actions);
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Grow {
                request, job, gpu, ..
            } => {
                let before = self.open.insert(*request, (*job, *gpu));
                assert_eq!(before, None);
            }
            Event::GrowAbandoned { request } => {
                self.open.remove(request);
            }
            Event::ProcessGone { process, .. } => self.limits.retain(|(key, _), _| key != process),
            Event::Ended { job, attempt, .. } | Event::StartFailed { job, attempt, .. } => {
                self.running
                    .retain(|id, number| (*id, *number) != (*job, *attempt));
            }
            Event::Sampled { sample } => {
                let bytes = sample.foreign.iter().map(|process| process.bytes).sum();
                self.foreign.insert(sample.gpu, bytes);
            }
            Event::MachineFound { gpus } => {
                let present: BTreeSet<GpuIndex> = gpus.iter().map(|gpu| gpu.index).collect();
                self.foreign.retain(|gpu, _| present.contains(gpu));
            }
            Event::JournalState { error } => self.journal_broken = error.is_some(),
            _ => {}
        }
    }

    fn action(&mut self, core: &Core, event: &Event, action: &Action) {
        match action {
            Action::Start {
                job, attempt, gpus, ..
            } => {
                assert!(!self.journal_broken, "started without a journal");
                let before = self.running.insert(*job, *attempt);
                assert_eq!(before, None, "job {job} runs already");
                let previous = self.attempts.insert(*job, *attempt).unwrap_or(0);
                assert_eq!(*attempt, previous + 1);
                let distinct: BTreeSet<&GpuIndex> = gpus.iter().collect();
                assert_eq!(distinct.len(), gpus.len());
            }
            Action::Stop { job, why, .. } => self.stop(core, *job, why),
            Action::SetLease {
                process,
                gpu,
                limit,
                ..
            } => {
                let before = self.limits.insert((*process, *gpu), *limit).unwrap_or(0);
                if *limit > before {
                    self.handed_out(core, *gpu);
                }
            }
            Action::Answer {
                request,
                answer: GrowAnswer::Wait { .. },
            } => {
                let (job, gpu) = self.open[request];
                waits_on_younger(core, job, gpu);
                assert!(matches!(event, Event::Grow { request: asked, .. } if asked == request));
            }
            Action::Answer { request, .. } => {
                let known = self.open.remove(request);
                assert!(known.is_some(), "request {request} answered twice");
            }
            Action::Finish { job, .. } | Action::Retry { job, .. } => {
                assert!(!self.running.contains_key(job));
            }
            Action::Learn { job, .. } => assert!(!self.running.contains_key(job)),
            Action::WakeAt { at } => assert!(*at > core.now),
        }
    }

    /// Protected jobs are never stopped for others, older ones never for younger ones.
    fn stop(&self, core: &Core, job: JobId, why: &StopReason) {
        assert!(self.running.contains_key(&job));
        let victim = &core.jobs[&job];
        if let StopReason::Evicted { .. } | StopReason::Rescue { .. } = why {
            assert!(victim.evictable(&core.policy), "{job} is protected");
        }
        if let StopReason::Evicted { job: older, .. } = why {
            let older = &core.jobs[older];
            let for_the_head = older.run.is_none();
            assert!(for_the_head || older.seniority() < victim.seniority());
        }
    }

    /// Invariant 5, from what the outside can know: limits, one context each, foreign processes.
    /// Only a job that keeps all others out may use up the guard, and never more than the GPU has.
    fn handed_out(&self, core: &Core, gpu: GpuIndex) {
        let limits = self.limits.iter().filter(|((_, at), _)| *at == gpu);
        let out: u64 = limits
            .filter(|(_, limit)| **limit > 0)
            .map(|(_, limit)| limit + CONTEXT)
            .sum();
        let foreign = self.foreign.get(&gpu).copied().unwrap_or(0);
        let exclusive = |id: &JobId| core.jobs[id].hold(gpu).is_some_and(|hold| hold.exclusive);
        let residents = &core.gpus[&gpu].residents[..];
        let guard = match residents {
            [only] if foreign == 0 && exclusive(only) => 0,
            _ => 512 * MIB,
        };
        assert!(
            out + foreign + guard <= 40 * GIB,
            "{out} out, {foreign} foreign on {gpu}"
        );
    }

    fn state(&mut self, core: &Core, actions: &[Action]) {
        let starts = actions.iter().filter_map(|action| match action {
            Action::Start { gpus, .. } => Some(gpus),
            _ => None,
        });
        let started: BTreeSet<&GpuIndex> = starts.flatten().collect();
        for view in core.gpus(core.now) {
            if started.contains(&view.index) {
                // Invariant 5 at placements.
                assert!(view.promised + view.unmanaged + view.guard <= view.memory);
                assert!(!view.lost);
            }
            budgets_hold(core, view.index, &view.residents);
        }
        for id in core.live() {
            let job = core.job(id).expect("a live job");
            let floor = job.floor.unwrap_or(0);
            let before = self.floors.insert(id, floor).unwrap_or(0);
            assert!(before <= floor, "the floor of {id} fell");
            // What waits is explained, and what runs is not.
            let blockers = core.explain(id, core.now);
            assert_eq!(blockers.is_empty(), job.position.is_none(), "{id}");
        }
    }
}

/// Sub-leases never exceed the budget, the budget never what was declared.
fn budgets_hold(core: &Core, gpu: GpuIndex, residents: &[JobId]) {
    for id in residents {
        let run = core.jobs[id].run.as_ref().expect("a resident runs");
        let hold = run.hold(gpu).expect("a resident holds");
        let lines = run.processes.iter().filter_map(|process| process.line(gpu));
        let out: u64 = lines.map(|line| line.sublease).sum();
        assert!(out <= hold.budget, "{id}: {out} of {}", hold.budget);
        assert!(hold.cap.is_none_or(|cap| hold.budget <= cap));
    }
}

/// An older job never waits for an older one.
fn waits_on_younger(core: &Core, job: JobId, index: GpuIndex) {
    let state = &core.gpus[&index];
    let seniority = core.jobs[&job].seniority();
    let mut residents = state.residents.iter().map(|id| &core.jobs[id]);
    let younger = residents.any(|resident| resident.seniority() > seniority);
    let departed = state.residents.iter().any(|id| {
        let hold = core.jobs[id].hold(index);
        hold.is_some_and(|hold| hold.departed > 0)
    });
    assert!(younger || departed || state.settling > 0);
}
