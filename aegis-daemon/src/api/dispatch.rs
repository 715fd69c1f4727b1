//! Which verb serves a request.

use aegis_common::wire::{ErrorCode, Failure, Request, Response};

use super::{cancel, doctor, explain, gpus, history, inspect, queue, status, submit};
use crate::owner::{ClientCall, Owner, Until};

impl Owner {
    /// Serves one request, now or when what it waits for has come true.
    pub(crate) fn on_client(&mut self, call: ClientCall) {
        let Some(call) = self.postpone(call) else {
            return;
        };
        let ClientCall {
            peer,
            request,
            reply,
        } = call;
        let response = match request {
            // The connection task answers `hello` itself.
            Request::Hello { .. } => {
                Err(Failure::new(ErrorCode::BadRequest, "hello was sent twice"))
            }
            Request::Submit(submit) => submit::handle(self, &peer, *submit),
            Request::Queue { all, uid, limit } => queue::handle(self, all, uid, limit),
            Request::Status { job } => status::handle(self, job),
            Request::Explain { job } => explain::handle(self, job),
            Request::Wait { jobs } => match self.known(&jobs) {
                Ok(()) => return self.wait(Until::Over(jobs), reply),
                Err(failure) => Err(failure),
            },
            Request::WaitAttempt { job, after } => match self.known(&[job]) {
                Ok(()) => return self.wait(Until::Attempt(job, after), reply),
                Err(failure) => Err(failure),
            },
            Request::Cancel { jobs } => match cancel::handle(self, &peer, &jobs) {
                Ok(()) => return self.wait(Until::Over(jobs), reply),
                Err(failure) => Err(failure),
            },
            Request::Gpus => gpus::handle(self),
            Request::Inspect { pid, job } => inspect::handle(self, pid, job),
            Request::History { filter } => history::handle(self, &peer, &filter),
            Request::Forget { filter, everything } => {
                history::forget(self, &peer, &filter, everything)
            }
            Request::PastJobs { since, after } => history::past(self, &peer, since, after),
            Request::Doctor => return doctor::handle(self, reply),
        };
        // A client that hung up does not need its answer.
        let _ = reply.send(response.unwrap_or_else(Response::Failed));
    }
}
