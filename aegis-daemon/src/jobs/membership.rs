//! To which attempt a process belongs.

use aegis_common::id::JobId;

use super::keepers::Keepers;
use super::{leftovers, tree};

/// Longest chain of ancestors that is followed.
const MAX_DEPTH: usize = 256;

impl Keepers {
    /// The attempt the process belongs to: it descends from the attempt's keeper, is in
    /// the kernel's set (which outlives the keeper), or was started with the job's token in its
    /// environment (containers: their processes descend from the container runtime).
    #[must_use]
    pub fn belongs(&self, pid: u32) -> Option<(JobId, u32)> {
        self.ancestor_keeper(pid)
            .or_else(|| {
                let lifecycle = self.lifecycle.as_ref().ok()?;
                lifecycle.attempt_of(tree::identify(pid)?)
            })
            .or_else(|| self.tokens.get(&leftovers::token_of(pid)?).copied())
    }

    fn ancestor_keeper(&self, pid: u32) -> Option<(JobId, u32)> {
        let mut process = tree::read(pid)?;
        for _ in 0..MAX_DEPTH {
            process = tree::read(process.parent)?;
            let found = self
                .handles
                .iter()
                .find(|(_, handle)| handle.keeper() == Some(process.key));
            if let Some((attempt, _)) = found {
                return Some(*attempt);
            }
        }
        None
    }
}
