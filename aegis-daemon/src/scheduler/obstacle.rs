//! The one list of what keeps a job off a GPU. Empty: it fits. Placement asks whether there is an
//! obstacle, `aegis explain` asks for all.

use std::ops::ControlFlow;

use aegis_common::id::Moment;
use aegis_common::job::Phase;
use aegis_common::policy::Policy;
use aegis_common::reason::Blocker;

use super::budget::Room;
use super::demand::Demand;
use super::facts::Facts;
use super::gate::Verdict;
use super::interference::{Load, change};

/// Whether nothing keeps a job off a GPU.
pub(super) fn fits(demand: &Demand, facts: &Facts, policy: &Policy) -> bool {
    obstacles(demand, facts, policy, &mut |_| ControlFlow::Break(())).is_continue()
}

/// Reports every obstacle to `found` until it breaks.
pub(super) fn obstacles(
    demand: &Demand,
    facts: &Facts,
    policy: &Policy,
    found: &mut impl FnMut(Blocker) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let gpu = facts.gpu;
    if facts.lost {
        // Nothing else is known of it.
        return found(Blocker::GpuLost { gpu });
    }
    reserved(demand, facts, found)?;
    if let Some((pid, bytes)) = facts.barred_by {
        found(Blocker::ForeignProcess { gpu, pid, bytes })?;
    }
    if facts.over > 0 {
        let over = facts.over;
        found(Blocker::Overdraft { gpu, over })?;
    }
    if let Some(job) = facts.exclusive {
        found(Blocker::HeldExclusively { gpu, job })?;
    }
    if demand.exclusive && !facts.residents.is_empty() {
        let residents = facts.residents.clone();
        found(Blocker::NeedsIdleGpu { gpu, residents })?;
    }
    if let Some(job) = facts.uninstrumented {
        found(Blocker::Uninstrumented { gpu, job })?;
    }
    if !demand.evictable {
        for &job in &facts.unprotected {
            found(Blocker::UnprotectedIncumbent { gpu, job })?;
        }
    }
    if let Some(limit) = facts.full {
        found(Blocker::MaxResidents { gpu, limit })?;
    }
    if facts.blind {
        found(Blocker::NoTelemetry { gpu })?;
    }
    telemetry(demand, facts, policy, found)?;
    let need = demand
        .budget_on(facts.memory, facts.outside, policy)
        .saturating_add(demand.overhead);
    if Room::from(need) > facts.room {
        found(Blocker::GpuMemory {
            gpu,
            need,
            available: u64::try_from(facts.room).unwrap_or(0),
            promised: facts.promised,
            unmanaged: facts.unmanaged,
            guard: facts.guard,
        })?;
    }
    ControlFlow::Continue(())
}

/// A reserved GPU takes jobs ahead of the holder, those that save their work when told to leave, and
/// those that end before all residents the holder waits for; none once these are gone (contract
/// C9). One that would only be stopped and start over is no filler: in replay that threw away 4 %
/// of all GPU time.
fn reserved(
    demand: &Demand,
    facts: &Facts,
    found: &mut impl FnMut(Blocker) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some((job, free_at)) = facts.reserved.filter(|_| !demand.unreserved) else {
        return ControlFlow::Continue(());
    };
    let ends = demand.lasts_ms.map(|lasts| facts.at.plus_millis(lasts));
    let admitted = free_at.is_some_and(|free_at| {
        // A resident without a time limit may end at any moment: nothing surely ends before it.
        let limited = free_at < Moment(u64::MAX);
        demand.suspendable || (limited && ends.is_some_and(|ends| ends <= free_at))
    });
    if admitted {
        return ControlFlow::Continue(());
    }
    let gpu = facts.gpu;
    found(Blocker::Reserved { gpu, job })
}

/// What a job would change on an occupied GPU, thousandths of the GPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worth {
    /// The gain is worth the harm, and nobody would be slowed too much.
    pub(super) it: bool,
    /// Work gained.
    pub(super) gain: i32,
    /// Work that would have to be gained for the slowdown added.
    pub(super) needed: i32,
    /// The largest slowdown, thousandths.
    pub(super) worst: u32,
}

/// Whether a job is worth the slowdown it would bring; `None` where that is not weighed.
pub(super) fn worth(demand: &Demand, facts: &Facts, policy: &Policy) -> Option<Worth> {
    let weight = policy.mode.weight()?;
    if !facts.weighed || facts.loads.is_empty() {
        return None;
    }
    let (sm, dram, peak) = demand.load?;
    let change = change(&facts.loads, Load::new(sm, dram, peak));
    let gain = thousandths(change.gain);
    let needed = thousandths(change.harm * f64::from(weight) / 1000.0);
    let worst = u32::try_from(thousandths(change.worst)).unwrap_or(0);
    Some(Worth {
        it: gain >= needed && worst <= policy.mode.worst(),
        gain,
        needed,
        worst,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, and shares and slowdowns are small"
)]
fn thousandths(value: f64) -> i32 {
    (value * 1000.0) as i32
}

fn telemetry(
    demand: &Demand,
    facts: &Facts,
    policy: &Policy,
    found: &mut impl FnMut(Blocker) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let gpu = facts.gpu;
    if !facts.sampled {
        found(Blocker::TelemetryStale { gpu, age_ms: None })?;
    } else if let Some(Verdict::Stale(age_ms)) = facts.gate {
        found(Blocker::TelemetryStale { gpu, age_ms })?;
    }
    for &(job, phase) in &facts.observing {
        found(Blocker::Observing { gpu, job, phase })?;
    }
    if let Some(job) = facts.dormant.filter(|_| !demand.evictable) {
        let phase = Phase::Dormant;
        found(Blocker::Observing { gpu, job, phase })?;
    }
    if let Some(worth) = worth(demand, facts, policy)
        && !worth.it
    {
        found(Blocker::Interference {
            gpu,
            worst: worth.worst,
            gain: worth.gain,
            needed: worth.needed,
        })?;
    }
    match facts.gate {
        Some(Verdict::Busy { is, limits }) => found(Blocker::Pressure {
            gpu,
            sm_active: is.sm_active,
            sm_occupancy: is.sm_occupancy,
            dram_active: is.dram_active,
            limit: limits.sm_active,
            occupancy_limit: limits.sm_occupancy,
            dram_limit: limits.dram_active,
        }),
        // The pressure of the residents as they are now is still being observed.
        Some(Verdict::Filling) if facts.observing.is_empty() => match facts.residents.last() {
            Some(&job) => {
                let phase = Phase::Observing;
                found(Blocker::Observing { gpu, job, phase })
            }
            None => found(Blocker::TelemetryStale { gpu, age_ms: None }),
        },
        _ => ControlFlow::Continue(()),
    }
}
