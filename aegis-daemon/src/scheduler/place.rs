//! Which pending jobs start where.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

use aegis_common::action::Action;
use aegis_common::id::{GpuIndex, JobId, Moment};
use aegis_common::policy::{Placement, Policy};

use super::budget::Room;
use super::core::Core;
use super::demand::Demand;
use super::facts::Facts;
use super::job::Stage;
use super::obstacle::{fits, worth};

/// Sorts the GPUs that fit: smaller is taken first.
type Preference = (bool, bool, i128, Reverse<bool>, GpuIndex);

impl Core {
    /// Starts every pending job that fits, in queue order. A placement closes its GPUs, so a
    /// demand that found no place finds none later in the same pass.
    ///
    /// A job that only waits for a sample to show departed jobs' memory free keeps its GPUs from
    /// smaller jobs behind it; such jobs are returned.
    pub(super) fn place(&mut self, at: Moment, out: &mut Vec<Action>) -> Vec<JobId> {
        let mut claimants = Vec::new();
        if self.journal_error.is_some() || self.queue.is_empty() {
            return claimants;
        }
        let mut claimed: Vec<GpuIndex> = Vec::new();
        let mut facts = self.all_facts(at);
        let mut most = self.most_room(&facts);
        let mut hopeless: BTreeSet<Demand> = BTreeSet::new();
        for id in self.queue.order() {
            let Some(room) = most else { break };
            let Some(demand) = self.demand(id) else {
                continue;
            };
            if Room::from(demand.least()) > room || hopeless.contains(&demand) {
                continue;
            }
            if let Some(gpus) = self.choose(&demand, &facts) {
                self.start(at, id, &demand, gpus, out);
                facts = self.all_facts(at);
            } else if let Some(gpus) = self.choose_settled(&demand, &facts) {
                claimed.extend(gpus);
                claimants.push(id);
                hopeless.insert(demand);
            } else {
                hopeless.insert(demand);
                continue;
            }
            facts.retain(|facts| !claimed.contains(&facts.gpu));
            most = self.most_room(&facts);
        }
        claimants
    }

    /// The most room, once samples show departed jobs' memory free, on a GPU that is not closed to
    /// everybody; `None` if all are.
    fn most_room(&self, facts: &[Facts]) -> Option<Room> {
        let settled = facts.iter().map(Facts::settled);
        let open = settled.filter(|facts| open(facts, &self.policy));
        open.map(|facts| facts.room).max()
    }

    /// The GPUs a job will take once samples show departed jobs' memory free.
    pub(super) fn choose_settled(&self, demand: &Demand, facts: &[Facts]) -> Option<Vec<GpuIndex>> {
        if facts.iter().all(|facts| facts.settling == 0) {
            return None;
        }
        let settled: Vec<Facts> = facts.iter().map(Facts::settled).collect();
        self.choose(demand, &settled)
    }

    /// All GPUs as placement sees them, by index.
    pub(super) fn all_facts(&self, at: Moment) -> Vec<Facts> {
        self.gpus.values().map(|gpu| self.facts(gpu, at)).collect()
    }

    /// A pending job's demand.
    pub(super) fn demand(&self, id: JobId) -> Option<Demand> {
        let job = self.jobs.get(&id)?;
        let weighed = self.policy.mode.weight().is_some();
        let load = weighed.then(|| self.load_figures(job, 0));
        let mut demand = Demand::new(job, &self.policy, self.is_unreserved(id), load);
        // What no GPU can hold beside its guard needs one without.
        demand.exclusive |= demand.expected.is_some_and(|expected| {
            let mut gpus = self.gpus.values();
            !gpus.any(|gpu| expected <= self.alone(gpu, demand.overhead))
        });
        Some(demand)
    }

    /// The GPUs a job takes, in rank order; `None` if too few fit.
    pub(super) fn choose(&self, demand: &Demand, facts: &[Facts]) -> Option<Vec<GpuIndex>> {
        let fitting = facts
            .iter()
            .filter(|facts| fits(demand, facts, &self.policy));
        let mut fitting: Vec<Preference> = fitting
            .map(|facts| self.preference(demand, facts))
            .collect();
        let need = usize::try_from(demand.gpus).unwrap_or(usize::MAX);
        if fitting.len() < need {
            return None;
        }
        fitting.sort_unstable();
        // How close they are matters less than that they are idle and without strangers.
        let class = |&(occupied, foreign, ..): &Preference| (occupied, foreign);
        let last = fitting.get(need.saturating_sub(1)).map(class);
        let of = |wanted: Ordering| {
            let same = fitting
                .iter()
                .filter(|one| Some(class(one)).cmp(&last) == wanted);
            same.map(|&(.., gpu)| gpu).collect::<Vec<_>>()
        };
        let mut gpus = self.closest(&of(Ordering::Less), &of(Ordering::Equal), need);
        gpus.sort_unstable();
        Some(gpus)
    }

    /// Idle GPUs first, those without foreign processes before others; then the policy's order.
    fn preference(&self, demand: &Demand, facts: &Facts) -> Preference {
        if let Some(worth) = worth(demand, facts, &self.policy) {
            return (
                !facts.residents.is_empty(),
                facts.foreign,
                -i128::from(worth.gain - worth.needed),
                Reverse(false),
                facts.gpu,
            );
        }
        let by_policy = match self.policy.placement {
            Placement::MostAvailableMemory | Placement::Exclusive => -facts.room,
            Placement::LeastUtilised => i128::from(facts.sm_active),
            Placement::BestFit => facts.room,
            Placement::RoundRobin => 0,
        };
        let after_last = self.policy.placement == Placement::RoundRobin
            && self.last_placed.is_some_and(|last| facts.gpu > last);
        (
            !facts.residents.is_empty(),
            facts.foreign,
            by_policy,
            Reverse(after_last),
            facts.gpu,
        )
    }

    fn start(
        &mut self,
        at: Moment,
        id: JobId,
        demand: &Demand,
        gpus: Vec<GpuIndex>,
        out: &mut Vec<Action>,
    ) {
        let Some(job) = self.jobs.get(&id) else {
            return;
        };
        let attempt = job.attempt().saturating_add(1);
        if self
            .reservation
            .as_ref()
            .is_some_and(|reservation| reservation.holder == id)
        {
            self.reservation = None;
        }
        self.occupy(at, id, attempt, &gpus, Stage::Starting);
        self.last_placed = gpus.last().copied();
        out.push(Action::Start {
            job: id,
            attempt,
            gpus,
            virtual_total: demand.cap,
        });
    }
}

/// Whether any job at all could go there. A load makes a job worth more or less, so the question
/// is asked without one.
fn open(facts: &Facts, policy: &Policy) -> bool {
    let easiest = Demand {
        gpus: 1,
        budget: Some(0),
        cap: None,
        overhead: 0,
        exclusive: false,
        evictable: true,
        suspendable: true,
        lasts_ms: Some(0),
        unreserved: true,
        expected: None,
        load: None,
    };
    fits(&easiest, facts, policy)
}
