//! Having the kernel follow an attempt's processes.

use aegis_common::id::{JobId, ProcessKey};

use super::keepers::Keepers;
use super::tree::{self, Process};
use crate::telemetry::{Lifecycle, Unavailable};

/// Passes over a tree that forks faster than it is followed.
const PASSES: u32 = 32;

impl Keepers {
    /// Has processes followed by the kernel from now on, or keeps why they are not. To be called
    /// before the first attempt is started or adopted.
    pub fn set_lifecycle(&mut self, lifecycle: Result<Lifecycle, Unavailable>) {
        self.lifecycle = lifecycle;
    }

    /// What follows processes, or why nothing does.
    ///
    /// # Errors
    /// As [`Lifecycle::start`] gave them.
    pub const fn lifecycle(&self) -> Result<&Lifecycle, &Unavailable> {
        self.lifecycle.as_ref()
    }

    /// Looks in `/proc` for processes that the kernel's set lacks: it was full, or they were forked
    /// before their parent was followed.
    pub fn resync(&self) {
        let Ok(lifecycle) = &self.lifecycle else {
            return;
        };
        for (attempt, handle) in &self.handles {
            if let Some(keeper) = handle.keeper() {
                follow_tree(lifecycle, *attempt, keeper);
            }
            for process in lifecycle.processes(*attempt) {
                follow_tree(lifecycle, *attempt, process);
            }
        }
    }
}

/// Follows a process and everybody below it. Children of a followed process are followed by the
/// kernel, so what is missing are those forked before, and it ends when a pass finds none.
pub(super) fn follow_tree(lifecycle: &Lifecycle, attempt: (JobId, u32), root: ProcessKey) {
    lifecycle.follow(attempt, root);
    for _ in 0..PASSES {
        let Ok(all) = tree::list() else {
            return;
        };
        // Another process may have the pid by now.
        if !all.iter().any(|process| process.key == root) {
            return;
        }
        let below = tree::descendants(&all, &[root.pid]);
        let missing = below.iter().filter(|process| !process.zombie);
        let added = missing.filter(|process| lifecycle.follow(attempt, process.key));
        if added.count() == 0 {
            return;
        }
    }
}

/// The attempt's processes by the kernel's set.
pub(super) fn find(lifecycle: &Lifecycle, attempt: (JobId, u32)) -> Vec<Process> {
    let known = lifecycle.processes(attempt).into_iter();
    known
        .filter_map(|key| tree::read(key.pid).filter(|process| process.key == key))
        .collect()
}
