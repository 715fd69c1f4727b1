//! Jobs as users see them: the core's figures joined with the record of the submission.

use std::collections::BTreeMap;

use aegis_common::bytes::ByteString;
use aegis_common::id::JobId;
use aegis_common::job::JobState;
use aegis_common::wire::{Attempt, ErrorCode, Explained, Explanation, Failure, JobView};
use tracing::error;

use super::Owner;
use crate::jobs::log_path;
use crate::scheduler::JobSummary;
use crate::store::JobRecord;

impl Owner {
    /// A live or finished job.
    ///
    /// # Errors
    /// `NotFound` if there never was one of that number; `Storage` if it cannot be read.
    pub(crate) fn view(&self, job: JobId) -> Result<JobView, Failure> {
        if let (Some(summary), Some(record)) = (self.core.job(job), self.records.get(&job)) {
            return Ok(self.join(summary, record, user_name(record.uid)));
        }
        match self.store.final_view(job) {
            Ok(Some(view)) => Ok(view),
            Ok(None) => Err(Failure {
                code: ErrorCode::NotFound,
                message: format!("there is no job {job}"),
                hint: Some("`aegis queue --all` lists the jobs of this machine".to_owned()),
                job: Some(job),
            }),
            Err(failure) => Err(Failure::new(ErrorCode::Storage, failure.to_string())),
        }
    }

    /// Live jobs: running first, then pending in queue order.
    pub(crate) fn live_views(&self) -> Vec<JobView> {
        // The system reads a file for each name.
        let mut names: BTreeMap<u32, Option<String>> = BTreeMap::new();
        let view = |job| {
            let (summary, record) = (self.core.job(job)?, self.records.get(&job)?);
            let name = names.entry(record.uid);
            let name = name.or_insert_with(|| user_name(record.uid)).clone();
            Some(self.join(summary, record, name))
        };
        self.core.live().filter_map(view).collect()
    }

    /// Jobs that are over while their last record cannot be written.
    pub(crate) fn ended_views(&self) -> impl Iterator<Item = JobView> {
        let ended = |job: &JobId| {
            let job = self.core.job(*job);
            job.is_some_and(|job| matches!(job.state, JobState::Done { .. }))
        };
        let jobs = self.records.keys().rev().copied().filter(ended);
        jobs.filter_map(|job| self.view(job).ok())
    }

    /// Why a job is where it is.
    pub(crate) fn explanation(&mut self, view: &JobView) -> Explanation {
        let now = self.clock.now();
        let blockers = match view.state {
            JobState::Pending => self.core.explain(view.id, now),
            _ => Vec::new(),
        };
        Explanation {
            job: view.id,
            state: view.state.clone(),
            blockers: blockers.into_iter().map(Explained::from).collect(),
            history: self.history(view),
        }
    }

    fn history(&self, view: &JobView) -> Vec<String> {
        let mut history = Vec::new();
        for attempt in &view.attempts {
            let gpus = attempt
                .gpus
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ");
            history.push(format!("attempt {} on GPU {gpus}", attempt.number));
            if let Some(why) = &attempt.stopped {
                history.push(format!("attempt {}: {why}", attempt.number));
            }
            if let Some(why) = &attempt.retried {
                history.push(format!("attempt {}: {why}", attempt.number));
            }
        }
        history.extend(view.refusals.iter().cloned());
        if matches!(view.state, JobState::Running { .. })
            && let Some(why) = self.core.host_bottleneck()
        {
            history.push(format!("slowdown unknown: {why} are the bottleneck"));
        }
        for (process, job) in &self.uninstrumented {
            if *job == view.id {
                history.push(format!(
                    "process {} uses a GPU without the shim: its figures here are unknown and \
                     nothing else is placed there (it called CUDA while aegisd was down, or does \
                     not load the shim)",
                    process.pid
                ));
            }
        }
        history
    }

    /// Puts the job's final view into the open transaction.
    pub(super) fn record_final(&mut self, job: JobId) {
        match self.view(job) {
            Ok(mut view) => {
                view.ended.get_or_insert(self.clock.now());
                if let Err(failure) = self.store.put_final(&view) {
                    error!(%job, error = %failure, "no final record");
                }
            }
            Err(failure) => error!(%job, error = failure.message, "no final record"),
        }
    }

    fn join(&self, summary: JobSummary, record: &JobRecord, user: Option<String>) -> JobView {
        let idle = self.idle_gpus(&summary);
        let running = matches!(summary.state, JobState::Running { .. });
        let attempts = summary.attempts.into_iter().map(|attempt| Attempt {
            number: attempt.number,
            gpus: attempt.gpus,
            started: attempt.started,
            ended: attempt.ended,
            exit: attempt.exit,
            stopped: attempt.stopped,
            retried: attempt.retried,
            peak: attempt.peak,
            log: ByteString::from(
                log_path(&self.settings.state_dir, record.id, attempt.number).into_os_string(),
            ),
        });
        JobView {
            id: record.id,
            name: record.name.clone(),
            uid: record.uid,
            user,
            argv: record.launch.argv.clone(),
            cwd: record.launch.cwd.clone(),
            resources: summary.resources,
            state: summary.state,
            submitted: summary.submitted,
            first_started: summary.first_started,
            ended: summary.ended,
            attempts: attempts.collect(),
            holdings: summary.holdings,
            floor: summary.floor,
            next_exclusive: summary.next_exclusive,
            evictions: summary.evictions,
            refusals: self.refusals.get(&record.id).cloned().unwrap_or_default(),
            position: summary.position,
            waits_for: None,
            learned: Some(record.learned.clone()).filter(|learned| learned.runs > 0),
            idle,
            slowdown: running.then_some(summary.slowdown),
        }
    }
}

/// The user's name, if the system knows it.
pub(crate) fn user_name(uid: u32) -> Option<String> {
    let user = uzers::get_user_by_uid(uid)?;
    Some(user.name().to_string_lossy().into_owned())
}
