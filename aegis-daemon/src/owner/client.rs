//! What clients ask for.

use aegis_common::id::JobId;
use aegis_common::job::JobState;
use aegis_common::wire::{Attempt, ErrorCode, Failure, JobView, Request, Response};
use tokio::sync::oneshot;

use super::Owner;

/// Who is at the other end of a client connection, by the kernel's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Effective uid.
    pub uid: u32,
    /// Effective gid.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// Pid, for the log.
    pub pid: Option<u32>,
}

/// Where an answer goes.
pub type Reply = oneshot::Sender<Response>;

/// A request on its way to the owner.
#[derive(Debug)]
pub struct ClientCall {
    /// Who asks.
    pub peer: Peer,
    /// What.
    pub request: Request,
    /// Where the answer goes.
    pub reply: Reply,
}

/// A client that waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    until: Until,
    reply: Reply,
}

/// What a client waits for.
#[derive(Debug)]
pub(crate) enum Until {
    /// All these jobs are over.
    Over(Vec<JobId>),
    /// The job has started an attempt later than this one, or is over.
    Attempt(JobId, u32),
}

impl Owner {
    /// Keeps a request that cannot be answered before the first word about the GPUs; gives back
    /// any other.
    pub(crate) fn postpone(&mut self, call: ClientCall) -> Option<ClientCall> {
        if matches!(call.request, Request::Submit(_) | Request::Gpus) && self.is_blind() {
            // What the machine has is known within moments of the start.
            self.early.push(call);
            return None;
        }
        Some(call)
    }

    /// Refuses the first job that never existed.
    pub(crate) fn known(&self, jobs: &[JobId]) -> Result<(), Failure> {
        for job in jobs {
            self.view(*job)?;
        }
        Ok(())
    }

    /// May `peer` act on `job`?
    pub(crate) fn authorise(&self, peer: &Peer, job: JobId) -> Result<(), Failure> {
        let view = self.view(job)?;
        if peer.uid == view.uid || self.is_admin(peer) {
            return Ok(());
        }
        let owner = view.user.unwrap_or_else(|| format!("uid {}", view.uid));
        Err(Failure {
            code: ErrorCode::Forbidden,
            message: format!("job {job} belongs to {owner}"),
            hint: Some(
                "ask its owner or an administrator (daemon.admin_users in the configuration)"
                    .to_owned(),
            ),
            job: Some(job),
        })
    }

    /// May see everybody's history: root, and the daemon's own user. An administrator of jobs is not
    /// one of people.
    pub(crate) const fn is_root(&self, peer: &Peer) -> bool {
        peer.uid == 0 || peer.uid == self.settings.uid
    }

    pub(crate) fn is_admin(&self, peer: &Peer) -> bool {
        let own = peer.uid == 0 || peer.uid == self.settings.uid;
        own || self.settings.admins.allows(peer.uid, &peer.groups)
    }

    /// Nothing was heard of the GPUs yet, good or bad.
    fn is_blind(&self) -> bool {
        !self.counted && self.telemetry.is_some() && self.telemetry_error.is_none()
    }

    /// Serves the submissions that waited for the first word about the GPUs.
    pub(super) fn serve_early(&mut self) {
        for call in std::mem::take(&mut self.early) {
            self.on_client(call);
        }
    }

    pub(crate) fn wait(&mut self, until: Until, reply: Reply) {
        self.waiters.push(Waiter { until, reply });
        self.notify_waiters();
    }

    /// Answers every waiter whose wish has come true.
    pub(super) fn notify_waiters(&mut self) {
        let waiters = std::mem::take(&mut self.waiters);
        for waiter in waiters {
            if waiter.reply.is_closed() {
                continue;
            }
            match self.come_true(&waiter.until) {
                // A client that hung up does not need its answer.
                Some(response) => drop(waiter.reply.send(response)),
                None => self.waiters.push(waiter),
            }
        }
    }

    fn come_true(&self, until: &Until) -> Option<Response> {
        match until {
            Until::Over(jobs) => {
                let views = jobs.iter().map(|job| self.final_view(*job));
                let jobs = views.collect::<Option<Vec<JobView>>>()?;
                Some(Response::Jobs { jobs })
            }
            Until::Attempt(job, after) => {
                let view = self.view(*job).ok()?;
                let started =
                    |attempt: &Attempt| attempt.number > *after && attempt.started.is_some();
                let over = matches!(view.state, JobState::Done { .. });
                (over || view.attempts.iter().any(started)).then(|| Response::Status {
                    job: Box::new(view),
                })
            }
        }
    }

    /// The job's view if it is over and its final record kept.
    fn final_view(&self, job: JobId) -> Option<JobView> {
        if self.core.job(job).is_some() {
            return None;
        }
        let view = self.view(job).ok()?;
        matches!(view.state, JobState::Done { .. }).then_some(view)
    }
}
