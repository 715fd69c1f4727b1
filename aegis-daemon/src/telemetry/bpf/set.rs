//! The kernel's set of followed processes, and the task that reads its events.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aegis_common::abi::lifecycle::{KIND_EXEC, KIND_EXIT, KIND_FORK, Record};
use aegis_common::id::{JobId, ProcessKey};
use aya::Ebpf;
use aya::maps::{HashMap, MapData, PerCpuArray, RingBuf};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::UnboundedSender;
use tracing::{error, warn};

use super::load::{Loaded, load};
use super::record::{self, TICK_NS};
use super::{Exited, LifecycleEvent, Unavailable};
use crate::procfs;
use crate::sys::reactor;

/// The programs, attached while a clone of this lives.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    set: Arc<Mutex<Set>>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Set {
    followed: HashMap<MapData, u32, [u64; 2]>,
    /// Attempts by the number that the kernel knows them by.
    roots: BTreeMap<u64, (JobId, u32)>,
    _programs: Ebpf,
}

impl Lifecycle {
    /// Loads the programs and sends what they see to `events`. Within a tokio runtime.
    ///
    /// # Errors
    /// They cannot be had here; the reason is for `aegis doctor`.
    pub fn start(events: &UnboundedSender<LifecycleEvent>) -> Result<Self, Unavailable> {
        Self::start_with(events, None)
    }

    pub(super) fn start_with(
        events: &UnboundedSender<LifecycleEvent>,
        ring: Option<u32>,
    ) -> Result<Self, Unavailable> {
        let Loaded {
            programs,
            followed,
            dropped,
            events: ring,
        } = load(ring)?;
        let descriptor = ring
            .as_fd()
            .try_clone_to_owned()
            .and_then(reactor::watch)
            .map_err(|error| Unavailable::Refused(error.to_string()))?;
        let set = Set {
            followed,
            roots: BTreeMap::new(),
            _programs: programs,
        };
        let lifecycle = Self {
            set: Arc::new(Mutex::new(set)),
            lost: Arc::default(),
        };
        let reader = Reader {
            // The programs go with the last handle, not with this task.
            set: Arc::downgrade(&lifecycle.set),
            lost: Arc::clone(&lifecycle.lost),
            dropped,
            ring,
            events: events.clone(),
        };
        tokio::spawn(reader.run(descriptor));
        Ok(lifecycle)
    }

    /// Follows a process that runs, and the children it has from now on. False if it was followed
    /// already or is gone.
    pub fn follow(&self, attempt: (JobId, u32), process: ProcessKey) -> bool {
        let mut set = self.set();
        let root = set.root(attempt);
        let value = [root, process.start_ticks.saturating_mul(TICK_NS)];
        let known = set.followed.get(&process.pid, 0);
        if known.is_ok_and(|[_, start]| record::key(process.pid, start) == process) {
            return false;
        }
        if let Err(error) = set.followed.insert(process.pid, value, 0) {
            warn!(pid = process.pid, %error, "a process cannot be followed");
            return false;
        }
        // Its end may have come before; then nobody else would take it out again.
        if !lives(process) {
            // Already gone from the set: that is what is wanted.
            let _ = set.followed.remove(&process.pid);
            return false;
        }
        true
    }

    /// The attempt of a followed process.
    #[must_use]
    pub fn attempt_of(&self, process: ProcessKey) -> Option<(JobId, u32)> {
        let set = self.set();
        let [root, start] = set.followed.get(&process.pid, 0).ok()?;
        let attempt = set.roots.get(&root)?;
        (record::key(process.pid, start) == process).then_some(*attempt)
    }

    /// The attempt's processes that live, by pid.
    #[must_use]
    pub fn processes(&self, attempt: (JobId, u32)) -> Vec<ProcessKey> {
        let set = self.set();
        let mut found: Vec<ProcessKey> = set
            .followed
            .iter()
            .filter_map(Result::ok)
            .filter(|(_, [root, _])| set.roots.get(root) == Some(&attempt))
            .map(|(pid, [_, start])| record::key(pid, start))
            .filter(|process| lives(*process))
            .collect();
        // An element that goes while the map is read lets the kernel begin anew.
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Events lost so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn set(&self) -> MutexGuard<'_, Set> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Set {
    /// The number of an attempt. Attempts are few; their numbers are kept.
    fn root(&mut self, attempt: (JobId, u32)) -> u64 {
        let known = self.roots.iter().find(|(_, of)| **of == attempt);
        if let Some((root, _)) = known {
            return *root;
        }
        let root = self.roots.last_key_value().map_or(1, |(last, _)| last + 1);
        self.roots.insert(root, attempt);
        root
    }
}

fn lives(process: ProcessKey) -> bool {
    procfs::read(process.pid).is_some_and(|found| found.key == process && !found.zombie)
}

/// Reads the ring buffer.
struct Reader {
    set: std::sync::Weak<Mutex<Set>>,
    lost: Arc<AtomicU64>,
    dropped: PerCpuArray<MapData, u64>,
    ring: RingBuf<MapData>,
    events: UnboundedSender<LifecycleEvent>,
}

impl Reader {
    async fn run(mut self, descriptor: AsyncFd<OwnedFd>) {
        loop {
            match descriptor.readable().await {
                // Before reading: what comes meanwhile wakes it again.
                Ok(mut ready) => ready.clear_ready(),
                Err(error) => return error!(%error, "events of processes end here"),
            }
            if self.drain().is_none() {
                return;
            }
        }
    }

    /// Passes on everything there is; `None` if nobody listens any more.
    fn drain(&mut self) -> Option<()> {
        let set = self.set.upgrade()?;
        while let Some(item) = self.ring.next() {
            let Some(record) = record::parse(&item) else {
                continue;
            };
            drop(item);
            let roots = &set.lock().unwrap_or_else(PoisonError::into_inner).roots;
            if let Some(event) = told(&record, roots) {
                self.events.send(event).ok()?;
            }
        }
        match self.count() {
            Ok(total) if total > self.lost.swap(total, Ordering::Relaxed) => {
                self.events.send(LifecycleEvent::Lost { total }).ok()
            }
            Ok(_) => Some(()),
            Err(error) => {
                warn!(%error, "the number of lost events cannot be read");
                Some(())
            }
        }
    }

    fn count(&self) -> io::Result<u64> {
        let per_processor = self.dropped.get(&0, 0).map_err(io::Error::other)?;
        Ok(per_processor.iter().sum())
    }
}

fn told(record: &Record, roots: &BTreeMap<u64, (JobId, u32)>) -> Option<LifecycleEvent> {
    let attempt = *roots.get(&record.root)?;
    let process = record::key(record.pid, record.start_ns);
    let command = record::command(record);
    Some(match record.kind {
        KIND_FORK => LifecycleEvent::Forked {
            attempt,
            process,
            parent: record.parent,
        },
        KIND_EXEC => LifecycleEvent::Executed {
            attempt,
            process,
            command,
        },
        KIND_EXIT => LifecycleEvent::Exited(Exited {
            attempt,
            process,
            command,
            exit: record::exit(record),
            sender: record::sender(record),
            out_of_memory: record::out_of_memory(record),
        }),
        _ => return None,
    })
}
