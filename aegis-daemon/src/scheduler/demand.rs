//! What a pending job asks of a GPU.

use aegis_common::policy::{Placement, Policy};

use super::job::Job;

/// Everything about a pending job that its placement depends on. Two jobs with equal demands fit
/// the same GPUs, so a pass over the queue looks at each demand once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Demand {
    /// GPUs at once.
    pub(super) gpus: u32,
    /// Bytes promised before start; `None`: the first lease.
    pub(super) budget: Option<u64>,
    /// Bytes it is known to need; a smaller GPU is still tried.
    pub(super) expected: Option<u64>,
    /// Bytes it may never exceed.
    pub(super) cap: Option<u64>,
    /// Bytes for contexts on each GPU.
    pub(super) overhead: u64,
    /// Needs its GPUs to itself.
    pub(super) exclusive: bool,
    /// May be stopped for others.
    pub(super) evictable: bool,
    /// Loses nothing by that: it saves its work.
    pub(super) suspendable: bool,
    /// It ends at the latest this long after its start, milliseconds.
    pub(super) lasts_ms: Option<u64>,
    /// No reservation binds it: it holds the one there is or is ahead of its holder.
    pub(super) unreserved: bool,
    /// How busy it keeps a GPU alone, thousandths of SM and DRAM time, and the bytes it holds; the
    /// usual where unknown. `None` is never weighed: where the mode weighs nothing, and one that
    /// merely asks whether anybody fits.
    pub(super) load: Option<(u16, u16, u64)>,
}

impl Demand {
    /// A job's; `unreserved` and `load`: see the fields.
    pub(super) fn new(
        job: &Job,
        policy: &Policy,
        unreserved: bool,
        load: Option<(u16, u16, u64)>,
    ) -> Self {
        let declared = job.resources.gpu_mem;
        Self {
            gpus: job.resources.gpus.max(1),
            budget: declared.max(job.floor),
            expected: declared.is_none().then(|| job.known_peak()).flatten(),
            // Recovery raises what was declared; at the end of the ladder nothing caps the job.
            cap: declared
                .filter(|_| !job.next_exclusive)
                .max(declared.and(job.floor).filter(|_| !job.next_exclusive)),
            overhead: policy
                .context_reserve
                .max(job.overhead_seen)
                .max(job.learned.overhead.unwrap_or(0)),
            exclusive: job.resources.exclusive
                || job.next_exclusive
                || policy.placement == Placement::Exclusive,
            evictable: job.evictable(policy),
            suspendable: job.suspendable(policy),
            lasts_ms: job
                .resources
                .time_limit_s
                .map(|seconds| seconds.saturating_mul(1000)),
            unreserved,
            load,
        }
    }

    /// Bytes it needs on any GPU at least.
    pub(super) fn least(&self) -> u64 {
        self.budget.unwrap_or(0).saturating_add(self.overhead)
    }

    /// Bytes promised on a GPU of that size before start.
    /// `outside` of it belongs to nobody here.
    pub(super) fn budget_on(&self, memory: u64, outside: u64, policy: &Policy) -> u64 {
        let first = policy.first_lease.min(memory / 8);
        let Some(expected) = self.expected else {
            return self.budget.unwrap_or(first);
        };
        let share = u128::from(expected) * u128::from(policy.peak_margin_permille) / 1000;
        let margin = u64::try_from(share).unwrap_or(u64::MAX);
        let wanted = expected.saturating_add(margin.max(policy.lease_chunk));
        let most = memory
            .saturating_sub(policy.guard_on(memory))
            .saturating_sub(outside)
            .saturating_sub(self.overhead);
        self.budget.unwrap_or(0).max(wanted.min(most))
    }
}
