//! After a restart: what was decided and may not have happened is done again.

use aegis_common::action::Action;
use aegis_common::id::JobId;

use super::core::Core;
use super::job::Stage;

impl Core {
    /// Forgets what died with the daemon (processes, samples, requests for memory: they will be
    /// told anew) and repeats the actions whose result is not known yet; all of them are
    /// idempotent.
    ///
    /// Until [`Event::Configured`](aegis_common::event::Event::Configured) says that all attempts
    /// found were told, none is stopped for its time limit.
    pub fn resume(&mut self) -> Vec<Action> {
        let mut out = Vec::new();
        self.waiting.clear();
        self.journal_error = None;
        self.wake = None;
        self.resuming = true;
        for gpu in self.gpus.values_mut() {
            gpu.distrust_samples();
        }
        for id in self.running.clone() {
            self.resume_job(id, &mut out);
        }
        self.arm(self.now, &mut out);
        out
    }

    fn resume_job(&mut self, id: JobId, out: &mut Vec<Action>) {
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        let attempt = job.attempt();
        let Some(run) = job.run.as_mut() else { return };
        run.processes.clear();
        run.gone.clear();
        for hold in &mut run.holds {
            hold.departed = 0;
        }
        let virtual_total = run.virtual_total();
        match &job.stage {
            Stage::Starting => {
                let last = job.attempts.last();
                out.push(Action::Start {
                    job: id,
                    attempt,
                    gpus: last.map(|last| last.gpus.clone()).unwrap_or_default(),
                    virtual_total,
                });
            }
            Stage::Stopping { why } => out.push(Action::Stop {
                job: id,
                attempt,
                why: why.clone(),
                how: job.leaves_by(why),
            }),
            Stage::Pending | Stage::Running | Stage::Done { .. } => {}
        }
    }
}
