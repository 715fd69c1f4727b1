//! What an attempt that ended taught.

use aegis_common::action::Action;
use aegis_common::id::{JobId, Moment};
use aegis_common::job::Exit;
use aegis_common::learned::Observed;

use super::core::Core;
use super::job::Run;

impl Core {
    /// Tells what the attempt in progress taught, before it is released.
    pub(super) fn learn(
        &mut self,
        at: Moment,
        id: JobId,
        exit: Exit,
        refused: bool,
        out: &mut Vec<Action>,
    ) {
        let Some((job, run)) = self.job_and_run(id) else {
            return;
        };
        let started = job.attempts.last().and_then(|attempt| attempt.started);
        let Some(started) = started else { return };
        let model = run.holds.first().and_then(|hold| self.gpus.get(&hold.gpu));
        let completed = exit == Exit::Code(0) && job.stoppable();
        let ran_ms = at.millis_since(started);
        let observed = Observed {
            gpu_model: model.map(|gpu| gpu.info.name.clone()).unwrap_or_default(),
            completed,
            out_of_memory: refused && !completed,
            peak: peak(run),
            overhead: self.measured_overhead(run),
            profile: job.alone,
            solo_rates: job.solo_rates.clone(),
            ran_ms,
            work_ms: work_ms(run, ran_ms),
            ended: at,
        };
        let work_ms = observed.work_ms.filter(|_| completed);
        let known = job.alone.or(job.shared);
        self.usual.note(known, observed.peak, work_ms);
        out.push(Action::Learn { job: id, observed });
    }

    fn measured_overhead(&self, run: &Run) -> Option<u64> {
        let holds = run.holds.iter();
        holds.filter_map(|hold| hold.overhead.min(self.now)).max()
    }
}

/// The highest bytes held on any one GPU, unless the job took whatever it saw.
fn peak(run: &Run) -> Option<u64> {
    let peak = run.holds.iter().map(|hold| hold.peak).max();
    peak.filter(|&peak| peak > 0 && !run.greedy)
}

/// What the attempt would have taken alone, where its slowdown was known for at least half of it.
fn work_ms(run: &Run, ran_ms: u64) -> Option<u64> {
    let done = run.done;
    if done.measured_ms == 0 || done.measured_ms < ran_ms / 2 {
        return None;
    }
    let scaled = u128::from(ran_ms) * u128::from(done.alone_ms) / u128::from(done.measured_ms);
    u64::try_from(scaled).ok()
}
