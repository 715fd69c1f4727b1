//! Process trees as `/proc` shows them, and how to end one that does not want to.

use std::collections::{HashMap, HashSet};
use std::io;

use aegis_common::id::ProcessKey;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

pub(crate) use crate::procfs::{Process, identify, read};

/// Passes over a tree that keeps forking before it is killed as far as it is known. Each pass
/// stops every process seen; what is left are children forked while it went.
const FREEZE_PASSES: u32 = 32;

/// Every process there is.
pub(crate) fn list() -> io::Result<Vec<Process>> {
    Ok(std::fs::read_dir("/proc")?
        .filter_map(|entry| read(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .collect())
}

/// The roots' descendants, without the roots, parents before their children.
pub(crate) fn descendants(all: &[Process], roots: &[u32]) -> Vec<Process> {
    let mut children: HashMap<u32, Vec<Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut found = Vec::new();
    let mut seen: HashSet<u32> = roots.iter().copied().collect();
    let mut next = roots.to_vec();
    while !next.is_empty() {
        let mut generation = Vec::new();
        for process in next.iter().filter_map(|pid| children.get(pid)).flatten() {
            if seen.insert(process.key.pid) {
                found.push(*process);
                generation.push(process.key.pid);
            }
        }
        next = generation;
    }
    found
}

/// Signals exactly this process, never a later one of the same pid. A process that is gone is no
/// error.
pub(crate) fn signal(key: ProcessKey, signal: Signal) -> io::Result<()> {
    let Some(pid) = i32::try_from(key.pid).ok().and_then(Pid::from_raw) else {
        return Ok(());
    };
    let sent = pidfd_open(pid, PidfdFlags::empty()).and_then(|pidfd| {
        if identify(key.pid) == Some(key) {
            pidfd_send_signal(&pidfd, signal)
        } else {
            Ok(())
        }
    });
    match sent {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        other => Ok(other?),
    }
}

/// Kills what `find` finds, parents first. All of it is stopped before any of it is killed, so
/// that nobody can replace a killed child. Returns how many processes were found alive and the
/// last error.
pub(crate) fn freeze_and_kill(
    mut find: impl FnMut() -> io::Result<Vec<Process>>,
) -> (usize, Option<io::Error>) {
    let mut frozen = Vec::new();
    let mut seen = HashSet::new();
    let mut last_error = None;
    let mut note = |result: io::Result<()>| {
        if let Err(error) = result {
            last_error = Some(error);
        }
    };
    for _ in 0..FREEZE_PASSES {
        let before = frozen.len();
        match find() {
            Ok(found) => {
                for process in found.iter().filter(|process| !process.zombie) {
                    if seen.insert(process.key) {
                        note(signal(process.key, Signal::STOP));
                        frozen.push(process.key);
                    }
                }
            }
            Err(error) => note(Err(error)),
        }
        if frozen.len() == before {
            break;
        }
    }
    for key in &frozen {
        note(signal(*key, Signal::KILL));
    }
    (frozen.len(), last_error)
}

#[cfg(test)]
mod tests {
    use super::{Process, descendants};
    use aegis_common::id::ProcessKey;
    use proptest::prelude::*;

    fn process(pid: u32, parent: u32) -> Process {
        Process {
            key: ProcessKey {
                pid,
                start_ticks: 0,
            },
            parent,
            zombie: false,
        }
    }

    proptest! {
        #[test]
        fn parents_come_before_children(parents in proptest::collection::vec(0_u32..30, 1..30)) {
            // May hold cycles, as an inconsistent view of /proc may.
            let all: Vec<_> = (1..).zip(&parents).map(|(pid, parent)| process(pid, *parent)).collect();
            let found = descendants(&all, &[0]);
            for (place, process) in found.iter().enumerate() {
                let earlier = &found[..place];
                prop_assert!(process.parent == 0
                    || earlier.iter().any(|parent| parent.key.pid == process.parent));
            }
        }
    }
}
