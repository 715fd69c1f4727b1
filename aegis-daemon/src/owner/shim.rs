//! What the shims in training processes ask for.

use aegis_common::abi::message::Verdict;
use aegis_common::abi::{ABI_MAJOR, GpuUuid};
use aegis_common::event::Event;
use aegis_common::id::{GpuIndex, JobId, ProcessKey};
use tracing::{debug, warn};

use super::Owner;
use super::processes::Process;
use crate::lease::{GrowRequest, HelloReply, LeasePage, LedgerFile, ShimEvent, ShimPeer};
use crate::sys::time::monotonic_ns;
use crate::telemetry::GpuFound;

impl Owner {
    pub(super) fn on_shim(&mut self, event: ShimEvent) {
        match event {
            ShimEvent::Hello {
                peer,
                token,
                abi,
                reply,
            } => self.hello(peer, &token, abi, reply),
            ShimEvent::Grow(request) => self.grow(request),
            ShimEvent::FirstLaunch { peer, token } => {
                if let Some((job, _)) = self.member(peer, &token) {
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
                if let Some((job, _)) = self.member(peer, &token) {
                    debug!(%job, pid = peer.process.pid, ?gpu, bytes, "episode of refusals");
                    self.read_ledger(peer.process);
                }
            }
        }
    }

    /// The job and attempt a shim speaks for: the token must be of a live attempt, and the peer
    /// must run as the job's user and descend from its keeper.
    fn member(&self, peer: ShimPeer, token: &[u8; 32]) -> Option<(JobId, u32)> {
        let (job, attempt) = self.keepers.by_token(token)?;
        let record = self.records.get(&job)?;
        let user = record.uid == peer.uid;
        (user && self.keepers.belongs(peer.process.pid) == Some((job, attempt)))
            .then_some((job, attempt))
    }

    fn hello(&mut self, peer: ShimPeer, token: &[u8; 32], abi: (u32, u32), reply: HelloReply) {
        if abi.0 != ABI_MAJOR {
            warn!(
                pid = peer.process.pid,
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
        let key = peer.process;
        if self.processes.get(key).is_some() {
            // exec kept the pid and start time but lost the mappings: begin a new ledger.
            self.drop_process(key);
        }
        let Some(held) = self.core.job(job).and_then(|job| {
            job.attempts
                .into_iter()
                .find(|found| found.number == attempt)
                .map(|found| found.gpus)
        }) else {
            reply.refuse(Verdict::Unknown);
            return;
        };
        match self.instrument(key, (job, attempt, peer.uid), held) {
            Ok(()) => {
                self.feed(Event::ProcessAttached { job, process: key });
                if let Some(process) = self.processes.get(key) {
                    process.page.heartbeat(monotonic_ns());
                    reply.accept(&process.ledger, &process.page);
                }
            }
            Err(error) => {
                warn!(%job, pid = key.pid, %error, "no ledger; the process runs without AEGIS");
                reply.refuse(Verdict::Unknown);
            }
        }
    }

    fn instrument(
        &mut self,
        key: ProcessKey,
        (job, attempt, uid): (JobId, u32, u32),
        held: Vec<GpuIndex>,
    ) -> Result<(), std::io::Error> {
        let name = format!("aegis-ledger:{job}:{}:{}", key.pid, key.start_ticks);
        let ledger = LedgerFile::create(&name)?;
        let page = LeasePage::create(&self.settings.lease_dir, key)?;
        self.keepers
            .hold(job, attempt, ledger.try_clone_fd()?, &name);
        let virtual_total = self.virtual_totals.get(&job).copied();
        let process = Process::new(
            (job, attempt, uid),
            ledger,
            page,
            &self.machine,
            held,
            virtual_total,
        );
        self.processes.insert(key, process);
        self.watch_process(key);
        Ok(())
    }

    fn grow(&mut self, request: GrowRequest) {
        let key = request.peer.process;
        let member = self.member(request.peer, &request.token);
        let gpu = self.gpu_of(&request.gpu);
        let (Some((job, _)), Some(gpu), true) = (member, gpu, self.processes.get(key).is_some())
        else {
            request.reply.refuse();
            return;
        };
        self.read_ledger(key);
        let number = self.next_grow;
        self.next_grow += 1;
        let mut reply = request.reply;
        reply.watch_hangup(number, self.grow_abandoned.clone());
        self.grows.insert(number, reply);
        self.grow_jobs.insert(number, job);
        self.feed(Event::Grow {
            request: number,
            job,
            process: key,
            gpu,
            bytes: request.bytes,
            held: request.held,
            try_number: request.try_number,
        });
    }

    pub(super) fn on_grow_abandoned(&mut self, request: u64) {
        if self.grows.remove(&request).is_some() {
            self.grow_jobs.remove(&request);
            self.feed(Event::GrowAbandoned { request });
        }
    }

    fn gpu_of(&self, uuid: &GpuUuid) -> Option<GpuIndex> {
        let found = self
            .machine
            .iter()
            .find(|found: &&GpuFound| found.uuid_bytes == *uuid);
        found.map(|found| found.index)
    }

    /// The process is gone: its last account counts, then what it held is free.
    pub(super) fn on_process_gone(&mut self, key: ProcessKey) {
        let Some(job) = self.processes.get(key).map(|process| process.job) else {
            return;
        };
        self.read_ledger(key);
        self.drop_process(key);
        self.feed(Event::ProcessGone { job, process: key });
        if let Some(telemetry) = &self.telemetry {
            telemetry.request_refresh();
        }
    }

    fn drop_process(&mut self, key: ProcessKey) {
        if let Some(process) = self.processes.remove(key) {
            process.page.remove();
        }
        self.attributed.retain(|(process, _), _| *process != key);
    }
}
