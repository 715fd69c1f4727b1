//! Requests for larger sub-leases: granted, denied, or kept waiting (contracts C1, C3, C4).

use aegis_common::action::{Action, GrowAnswer};
use aegis_common::event::Event;
use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use aegis_common::reason::{Denial, StopReason};

use super::core::Core;
use super::job::Stage;
use super::quote::{Ask, Grant, Obstacle};

impl Core {
    /// Decides a new request.
    pub(super) fn grow(&mut self, at: Moment, event: &Event, out: &mut Vec<Action>) {
        let Event::Grow {
            request,
            job,
            process,
            gpu,
            bytes,
            held,
            try_number,
        } = *event
        else {
            return;
        };
        if self.waiting.iter().any(|ask| ask.request == request) {
            return;
        }
        let ask = Ask {
            request,
            job,
            process,
            gpu,
            bytes,
            held: held.max(bytes),
            since: at,
            deadline: at.plus_millis(u64::from(self.policy.grow_wait_ms)),
        };
        self.attach(job, process, true, out);
        let first = self.touch(&ask);
        if let Some(denial) = self.refused_while_stopping(&ask) {
            return deny(&ask, denial, out);
        }
        if first && self.is_greedy(&ask) {
            return self.grow_greedy(&ask, out);
        }
        let quote = match self.quote(&ask) {
            Err(Obstacle::Final(Denial::ExceedsCapacity { .. })) if self.claims_gpu(&ask) => {
                self.quote(&ask)
            }
            quote => quote,
        };
        match quote {
            Ok(grant) => self.grant(at, &ask, grant, out),
            Err(Obstacle::Final(denial)) => deny(&ask, denial, out),
            Err(Obstacle::Short { by, denial }) => {
                if self.may_wait(&ask) && self.waits_on_this_try(job, try_number) {
                    self.make_room(&ask, by, out);
                    let wait_ms = self.policy.grow_wait_ms;
                    out.push(Action::Answer {
                        request,
                        answer: GrowAnswer::Wait { wait_ms },
                    });
                    self.waiting.push(ask);
                } else {
                    deny(&ask, denial, out);
                }
            }
        }
    }

    /// Looks at the waiting requests again, those of the oldest jobs first.
    pub(super) fn retry_waiting(&mut self, at: Moment, out: &mut Vec<Action>) {
        let mut asks = self.waiting.clone();
        asks.sort_by_key(|ask| {
            let job = self.jobs.get(&ask.job);
            (job.map(|job| job.seniority()), ask.request)
        });
        for ask in asks {
            if !self
                .waiting
                .iter()
                .any(|waiting| waiting.request == ask.request)
            {
                // An eviction for another one denied it meanwhile.
                continue;
            }
            match self.quote(&ask) {
                Ok(grant) => {
                    self.forget_ask(ask.request);
                    self.grant(at, &ask, grant, out);
                }
                Err(Obstacle::Final(denial)) => {
                    self.forget_ask(ask.request);
                    deny(&ask, denial, out);
                }
                Err(Obstacle::Short { denial, .. }) if !self.may_wait(&ask) => {
                    self.forget_ask(ask.request);
                    deny(&ask, denial, out);
                }
                Err(Obstacle::Short { .. }) if at >= ask.deadline => {
                    self.forget_ask(ask.request);
                    let denial = Denial::WaitedInVain {
                        request: ask.bytes,
                        waited_ms: at.millis_since(ask.since),
                    };
                    deny(&ask, denial, out);
                }
                Err(Obstacle::Short { by, .. }) => self.make_room(&ask, by, out),
            }
        }
    }

    /// Answers all waiting requests of a job, or of one of its processes, with a denial.
    pub(super) fn deny_waiting(
        &mut self,
        job: JobId,
        process: Option<ProcessKey>,
        why: &Denial,
        out: &mut Vec<Action>,
    ) {
        let concerned =
            |ask: &Ask| ask.job == job && process.is_none_or(|process| ask.process == process);
        for ask in self.waiting.iter().filter(|ask| concerned(ask)) {
            deny(ask, why.clone(), out);
        }
        self.waiting.retain(|ask| !concerned(ask));
    }

    /// Drops a waiting request.
    pub(super) fn forget_ask(&mut self, request: u64) {
        self.waiting.retain(|ask| ask.request != request);
    }

    fn grant(&mut self, at: Moment, ask: &Ask, grant: Grant, out: &mut Vec<Action>) {
        let Some(job) = self.jobs.get_mut(&ask.job) else {
            return;
        };
        let Some(run) = job.run.as_mut() else { return };
        let mut oldest = false;
        if let Some(line) = run
            .process_mut(ask.process)
            .and_then(|process| process.line_mut(ask.gpu))
        {
            line.sublease = grant.limit;
            oldest = line.oldest;
        }
        let others: u64 = run
            .processes
            .iter()
            .filter(|process| process.key != ask.process)
            .filter_map(|process| process.line(ask.gpu))
            .fold(0, |sum, line| sum.saturating_add(line.used));
        if let Some(hold) = run.hold_mut(ask.gpu) {
            hold.budget = grant.budget;
        }
        // Between two readings of its ledger the job may allocate and free: count it now.
        self.note_peak(at, ask.job, ask.gpu, others.saturating_add(ask.held));
        out.push(Action::SetLease {
            process: ask.process,
            gpu: ask.gpu,
            limit: grant.limit,
            oldest,
        });
        out.push(Action::Answer {
            request: ask.request,
            answer: GrowAnswer::Granted { limit: grant.limit },
        });
    }

    /// Notes that the process uses the GPU; whether this is its first request there.
    fn touch(&mut self, ask: &Ask) -> bool {
        let run = self.jobs.get_mut(&ask.job).and_then(|job| job.run.as_mut());
        let line = run
            .and_then(|run| run.process_mut(ask.process))
            .and_then(|process| process.line_mut(ask.gpu));
        let Some(line) = line else { return false };
        line.touched = true;
        line.sublease == 0 && line.used == 0 && ask.held == ask.bytes
    }

    /// A first request above half of the visible free memory, beyond the budget of a job that
    /// declared none: a framework that preallocates.
    fn is_greedy(&self, ask: &Ask) -> bool {
        let (Some(gpu), Some((_, run))) = (self.gpus.get(&ask.gpu), self.job_and_run(ask.job))
        else {
            return false;
        };
        let free = gpu.info.memory.saturating_sub(gpu.used.unwrap_or(0));
        run.hold(ask.gpu).is_some_and(|hold| {
            let held = run.committed(ask.gpu).saturating_add(ask.held);
            hold.cap.is_none() && !hold.exclusive && ask.bytes > free / 2 && held > hold.budget
        })
    }

    /// A preallocating job takes what it sees: it gets a GPU to itself, here if nobody else is
    /// there, else in its next attempt.
    fn grow_greedy(&mut self, ask: &Ask, out: &mut Vec<Action>) {
        let alone = self
            .gpus
            .get(&ask.gpu)
            .is_some_and(|gpu| gpu.residents == [ask.job]);
        if let Some(job) = self.jobs.get_mut(&ask.job) {
            job.next_exclusive = true;
            if let Some(run) = job.run.as_mut() {
                run.greedy = true;
            }
        }
        match self.quote(ask) {
            Ok(grant) if alone => {
                let run = self.jobs.get_mut(&ask.job).and_then(|job| job.run.as_mut());
                if let Some(hold) = run.and_then(|run| run.hold_mut(ask.gpu)) {
                    hold.exclusive = true;
                }
                self.grant(ask.since, ask, grant, out);
            }
            Ok(_) => {
                // There may be room, but this job would take it from everybody's growth.
                let left = self.job_and_run(ask.job).and_then(|(_, run)| {
                    let hold = run.hold(ask.gpu)?;
                    Some(hold.budget.saturating_sub(run.committed(ask.gpu)))
                });
                let denial = Denial::NoRoom {
                    request: ask.bytes,
                    available: left.unwrap_or(0),
                };
                deny(ask, denial, out);
            }
            Err(Obstacle::Final(denial) | Obstacle::Short { denial, .. }) => {
                deny(ask, denial, out);
            }
        }
    }

    /// A job that needs what is kept free for others keeps them out instead, if none is there.
    fn claims_gpu(&mut self, ask: &Ask) -> bool {
        let (Some(gpu), Some((_, run))) = (self.gpus.get(&ask.gpu), self.job_and_run(ask.job))
        else {
            return false;
        };
        let Some(hold) = run.hold(ask.gpu).filter(|hold| hold.cap.is_none()) else {
            return false;
        };
        let undisturbed = gpu.residents == [ask.job] && gpu.foreign.is_empty();
        let fits = ask.held <= self.exclusively(gpu, self.overhead(run, hold));
        if !undisturbed || !fits {
            return false;
        }
        let Some(job) = self.jobs.get_mut(&ask.job) else {
            return false;
        };
        job.next_exclusive = true;
        let hold = job.run.as_mut().and_then(|run| run.hold_mut(ask.gpu));
        hold.is_some_and(|hold| !std::mem::replace(&mut hold.exclusive, true))
    }

    /// A job being stopped for others gets nothing more; one stopped for itself may still need
    /// memory to save its state.
    fn refused_while_stopping(&self, ask: &Ask) -> Option<Denial> {
        match self.jobs.get(&ask.job).map(|job| &job.stage) {
            Some(Stage::Stopping {
                why: StopReason::Evicted { job, .. },
            }) => Some(Denial::BeingEvicted { job: *job }),
            Some(Stage::Stopping {
                why: StopReason::Rescue { .. },
            }) => Some(Denial::Overdraft),
            _ => None,
        }
    }

    /// Somebody must be there to wait for: a strictly younger job, or memory that was released and
    /// that no sample has shown free yet.
    fn may_wait(&self, ask: &Ask) -> bool {
        let Some(job) = self.jobs.get(&ask.job).filter(|job| job.stoppable()) else {
            return false;
        };
        self.has_younger(job.seniority(), ask.gpu) || self.is_settling(ask.gpu)
    }

    fn has_younger(&self, seniority: (Moment, JobId), gpu: GpuIndex) -> bool {
        let residents = self.gpus.get(&gpu).map(|gpu| &gpu.residents);
        let mut residents = residents.into_iter().flatten();
        residents.any(|id| {
            let resident = self.jobs.get(id);
            resident.is_some_and(|resident| resident.seniority() > seniority)
        })
    }

    fn is_settling(&self, index: GpuIndex) -> bool {
        self.gpus.get(&index).is_some_and(|gpu| {
            let departed = |id: &JobId| {
                let hold = self.jobs.get(id).and_then(|job| job.hold(index));
                hold.is_some_and(|hold| hold.departed > 0)
            };
            gpu.settling > 0 || gpu.residents.iter().any(departed)
        })
    }

    /// A client that is known to free its cache and ask again shall do that before anybody is
    /// evicted for it.
    fn waits_on_this_try(&mut self, id: JobId, try_number: u32) -> bool {
        let Some(job) = self.jobs.get_mut(&id) else {
            return false;
        };
        job.client_retries |= try_number > 1;
        try_number > 1 || !job.client_retries
    }
}

fn deny(ask: &Ask, why: Denial, out: &mut Vec<Action>) {
    out.push(Action::Answer {
        request: ask.request,
        answer: GrowAnswer::Denied { why },
    });
}
