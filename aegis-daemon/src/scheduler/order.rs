//! In what order pending jobs are looked at.

use aegis_common::id::JobId;
use aegis_common::policy::Order;

use super::core::Core;

/// With [`Order::Shortest`], a job may be overtaken by those that come within this many times its
/// expected running time. It keeps the order free of starvation: whoever comes later than that is
/// behind it, however short.
const OVERTAKEN_FOR: u64 = 20;

impl Core {
    /// Puts a job among the pending ones; one that ran before gets its user's old turn.
    pub(super) fn enqueue(&mut self, id: JobId, turn: Option<u64>) {
        let usual = self.usual.work_ms;
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        job.rank = match self.policy.order {
            Order::Fifo => 0,
            Order::Shortest => {
                let known = job.learned.work.map(|work| work.p50);
                let work = known.unwrap_or(usual);
                let gpus = u64::from(job.resources.gpus.max(1));
                let allowance = work.saturating_mul(gpus).saturating_mul(OVERTAKEN_FOR);
                job.submitted.0.saturating_add(allowance).max(1)
            }
        };
        let ticket = job.ticket();
        self.queue.insert(ticket, turn);
    }
}
