//! Observation after placement (contract C7).

use aegis_common::id::{JobId, Moment};
use aegis_common::job::Phase;
use aegis_common::policy::Policy;
use serde::{Deserialize, Serialize};

use super::core::Core;

/// How far an attempt's observation is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Observation {
    /// As of the last step.
    phase: Phase,
    /// When the attempt was placed.
    placed: Moment,
    /// First launch of this observation.
    first_launch: Option<Moment>,
    /// Latest first launch of any process during it: what counts for the minimum.
    anchor: Option<Moment>,
    /// When the peak last rose.
    peak_rose: Moment,
    /// When a launch was last seen.
    last_launch: Moment,
    /// It was steady once: its peak is learned.
    observed: bool,
    /// The peak rose since: it is learned anew, with the GPUs open.
    reobserving: bool,
}

impl Observation {
    /// An attempt just placed.
    pub(super) const fn new(placed: Moment) -> Self {
        Self {
            phase: Phase::WarmUp,
            placed,
            first_launch: None,
            anchor: None,
            peak_rose: placed,
            last_launch: placed,
            observed: false,
            reobserving: false,
        }
    }

    /// The phase at a moment not before the last step.
    pub(super) fn phase_at(&self, at: Moment, policy: &Policy) -> Phase {
        let mut then = self.clone();
        then.advance(at, policy);
        then.phase
    }

    /// The next change of phase that time alone brings.
    pub(super) fn due(&self, policy: &Policy) -> Option<(Moment, Phase)> {
        match self.phase {
            Phase::WarmUp => Some((
                self.placed.plus_millis(policy.dormant_after_ms),
                Phase::Dormant,
            )),
            Phase::Observing => {
                let first = self.first_launch.unwrap_or(self.placed);
                let shortest = self
                    .anchor
                    .unwrap_or(first)
                    .plus_millis(policy.observe_min_ms);
                let plateau = self.peak_rose.plus_millis(policy.plateau_ms);
                let longest = first.plus_millis(policy.observe_max_ms);
                Some((shortest.max(plateau).min(longest), Phase::Steady))
            }
            Phase::Steady => {
                let dormant = self.last_launch.plus_millis(policy.dormant_after_ms);
                let plateau = self.peak_rose.plus_millis(policy.plateau_ms);
                Some(if self.reobserving && plateau < dormant {
                    (plateau, Phase::Steady)
                } else {
                    (dormant, Phase::Dormant)
                })
            }
            Phase::Dormant => None,
        }
    }

    /// Makes the phase that of `at`; returns whether the peak has just been learned.
    fn advance(&mut self, at: Moment, policy: &Policy) -> bool {
        let mut learned = false;
        while let Some((_, phase)) = self.due(policy).filter(|&(due, _)| due <= at) {
            learned |= phase == Phase::Steady;
            self.reobserving = false;
            self.phase = phase;
        }
        self.observed |= learned;
        learned
    }

    /// Launches were seen; `first` if by a process that had not launched before.
    pub(super) fn launched(&mut self, at: Moment, first: bool) {
        self.last_launch = at;
        match self.phase {
            Phase::WarmUp | Phase::Dormant => {
                self.phase = Phase::Observing;
                self.first_launch = Some(at);
                self.anchor = Some(at);
            }
            Phase::Observing if first => self.anchor = Some(at),
            Phase::Observing | Phase::Steady => {}
        }
    }

    /// The peak rose. A steady attempt is re-observed without closing its GPUs.
    pub(super) fn peak_rose(&mut self, at: Moment) {
        self.peak_rose = at;
        self.reobserving = self.phase == Phase::Steady;
    }

    /// Telemetry before this moment shows start-up, not training.
    pub(super) fn settled_from(&self, policy: &Policy) -> Option<Moment> {
        self.anchor
            .map(|anchor| anchor.plus_millis(policy.observe_min_ms))
    }

    /// Its peak is learned.
    pub(super) const fn observed(&self) -> bool {
        self.observed
    }
}

impl Core {
    /// Advances every running attempt's phase; the budget of one that became steady is fitted to
    /// its peak.
    pub(super) fn observe(&mut self, at: Moment) {
        let mut steady: Vec<JobId> = Vec::new();
        for id in &self.running {
            let Some(run) = self.jobs.get_mut(id).and_then(|job| job.run.as_mut()) else {
                continue;
            };
            if run.observation.advance(at, &self.policy) {
                steady.push(*id);
            }
        }
        for id in steady {
            self.fit_budget(id);
        }
    }
}
