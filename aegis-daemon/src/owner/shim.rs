//! What the shims in training processes ask for.

use std::os::fd::{AsFd, OwnedFd};

use aegis_common::abi::ABI_MAJOR;
use aegis_common::abi::message::Verdict;
use aegis_common::event::Event;
use aegis_common::id::{GpuIndex, JobId, ProcessKey};
use tracing::{debug, warn};

use super::Owner;
use super::processes::Process;
use super::sample::by_uuid;
use crate::lease::{
    HelloReply, LeaseError, LeaseName, LeasePage, LedgerFile, ShimEvent, ShimPeer, Token,
    monotonic_ns, wait_exit,
};

impl Owner {
    pub(super) fn on_shim(&mut self, event: ShimEvent) {
        match event {
            ShimEvent::Hello {
                peer,
                pidfd,
                token,
                abi,
                reply,
            } => self.hello(peer, pidfd, &token, abi, reply),
            ShimEvent::Grow {
                request,
                peer,
                token,
                gpu,
                bytes,
                held,
                try_number,
                reply,
            } => {
                let key = peer.process;
                let member = self.attached(peer, &token);
                let found = by_uuid(&self.machine, &gpu).map(|found| found.index);
                let (Some(job), Some(gpu)) = (member, found) else {
                    reply.refuse(Verdict::Unknown);
                    return;
                };
                self.read_ledger(key);
                self.grows.insert(request, reply);
                self.grow_jobs.insert(request, job);
                self.feed(Event::Grow {
                    request,
                    job,
                    process: key,
                    gpu,
                    bytes,
                    held,
                    try_number,
                });
            }
            ShimEvent::GrowAbandoned { request } => {
                // The final answer may have crossed with the hang-up.
                if self.grows.remove(&request).is_some() {
                    self.grow_jobs.remove(&request);
                    self.feed(Event::GrowAbandoned { request });
                }
            }
            ShimEvent::FirstLaunch { peer, token } => {
                if let Some(job) = self.attached(peer, &token) {
                    self.feed(Event::FirstLaunch {
                        job,
                        process: peer.process,
                    });
                }
            }
            ShimEvent::Refused {
                peer,
                token,
                gpu,
                bytes,
            } => {
                if let Some(job) = self.attached(peer, &token) {
                    debug!(%job, pid = peer.process.pid, ?gpu, bytes, "episode of refusals");
                    self.read_ledger(peer.process);
                }
            }
        }
    }

    /// The job and attempt a shim speaks for: the token must be of a live attempt, and the peer
    /// must run as the job's user and descend from its keeper (contract C12).
    fn member(&self, peer: ShimPeer, token: &Token) -> Option<(JobId, u32)> {
        let attempt = *self.keepers.tokens().get(token)?;
        let record = self.records.get(&attempt.0)?;
        (record.uid == peer.uid && self.keepers.belongs(peer.process.pid) == Some(attempt))
            .then_some(attempt)
    }

    /// The job of a process that has a ledger. Membership was checked when it got it.
    fn attached(&self, peer: ShimPeer, token: &Token) -> Option<JobId> {
        let job = self.processes.get(peer.process)?.job;
        (self.records.get(&job)?.token == *token).then_some(job)
    }

    fn hello(
        &mut self,
        peer: ShimPeer,
        pidfd: OwnedFd,
        token: &Token,
        abi: (u32, u32),
        reply: HelloReply,
    ) {
        let key = peer.process;
        if abi.0 != ABI_MAJOR {
            warn!(
                pid = key.pid,
                ?abi,
                "a shim of another ABI version runs without AEGIS"
            );
            reply.refuse(Verdict::Incompatible);
            return;
        }
        let Some((job, attempt)) = self.member(peer, token) else {
            reply.refuse(Verdict::Unknown);
            return;
        };
        if self.processes.get(key).is_some() {
            // exec kept the process and lost the mappings: a new program begins a new ledger.
            self.on_process_gone(key);
        }
        if let Err(error) = self.instrument(key, job, attempt) {
            warn!(%job, pid = key.pid, %error, "no ledger; the process runs without AEGIS");
            reply.refuse(Verdict::Unknown);
            return;
        }
        self.watch_process(key, pidfd);
        self.uninstrumented.remove(&key);
        self.feed(Event::ProcessAttached { job, process: key });
        if let Err(error) = self.hand_over(key, reply) {
            warn!(%job, pid = key.pid, %error, "the process did not take its ledger");
            self.on_process_gone(key);
        }
    }

    fn instrument(&mut self, key: ProcessKey, job: JobId, attempt: u32) -> Result<(), LeaseError> {
        let name = LeaseName { job, process: key };
        let ledger = LedgerFile::create(&name.ledger())?;
        let page = LeasePage::create(&self.settings.lease_dir, name)?;
        let process = Process::new((job, attempt), ledger, page);
        let held = self.gpus_of(job, attempt);
        let virtual_total = self.virtual_totals.get(&job).copied();
        process.lay_out(&self.machine, &held, virtual_total)?;
        let copy = process.ledger.try_clone()?;
        self.keepers.hold(job, attempt, copy, &name.ledger());
        self.processes.insert(key, process);
        Ok(())
    }

    fn hand_over(&self, key: ProcessKey, reply: HelloReply) -> Result<(), LeaseError> {
        if let Some(process) = self.processes.get(key) {
            process.page.heartbeat(monotonic_ns())?;
            let lease = process.page.read_only_fd()?;
            reply.accept(process.ledger.as_fd(), lease.as_fd())?;
        }
        Ok(())
    }

    /// The GPUs of an attempt, in rank order.
    pub(super) fn gpus_of(&self, job: JobId, attempt: u32) -> Vec<GpuIndex> {
        let attempts = self.core.job(job).map(|job| job.attempts);
        let of_number = attempts
            .into_iter()
            .flatten()
            .find(|found| found.number == attempt);
        of_number.map(|found| found.gpus).unwrap_or_default()
    }

    /// Has the process's end reported to [`Owner::run`].
    pub(super) fn watch_process(&self, key: ProcessKey, pidfd: OwnedFd) {
        let gone = self.process_gone.clone();
        tokio::spawn(async move {
            if let Err(error) = wait_exit(pidfd).await {
                warn!(pid = key.pid, %error, "a process cannot be watched; taken for gone");
            }
            // The owner is gone only when the daemon stops.
            let _ = gone.send(key);
        });
    }

    /// The process is gone: its last account counts, then what it held is free.
    pub(super) fn on_process_gone(&mut self, key: ProcessKey) {
        if self.processes.get(key).is_none() {
            return;
        }
        self.read_ledger(key);
        let Some(process) = self.processes.remove(key) else {
            return;
        };
        let job = process.job;
        let name = LeaseName { job, process: key };
        self.keepers.release(job, process.attempt, &name.ledger());
        if let Err(error) = process.page.remove() {
            debug!(%error, "a lease page stays behind");
        }
        self.attributed.retain(|(process, _), _| *process != key);
        self.feed(Event::ProcessGone { job, process: key });
        self.refresh_samples();
    }
}
