//! Process trees as `/proc` shows them, and how to end one that does not want to.

use std::collections::{HashMap, HashSet};
use std::io;

use aegis_common::id::ProcessKey;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Passes over a tree that keeps forking before it is killed as far as it is known. Each pass
/// stops every process seen; what is left are children forked while it went.
const FREEZE_PASSES: u32 = 32;

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) key: ProcessKey,
    pub(crate) parent: u32,
    /// Ended, but not waited for by its parent.
    pub(crate) zombie: bool,
}

/// Reads one process; `None` if it is gone.
pub(crate) fn read(pid: u32) -> Option<Process> {
    parse(pid, &std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The process's identity; `None` if it is gone.
pub(crate) fn identify(pid: u32) -> Option<ProcessKey> {
    read(pid).map(|process| process.key)
}

/// `/proc/PID/stat`. The command name, between the first and the last parenthesis, may hold
/// anything.
fn parse(pid: u32, stat: &[u8]) -> Option<Process> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    // Fields 3 (state), 4 (ppid) and 22 (starttime) of proc_pid_stat(5).
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let start_ticks = fields.nth(17)?.parse().ok()?;
    Some(Process {
        key: ProcessKey { pid, start_ticks },
        parent,
        zombie: matches!(state, "Z" | "X"),
    })
}

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
    use super::{Process, descendants, identify, parse};
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

    #[test]
    fn a_hostile_command_name_does_not_shift_the_fields() {
        let stat = b"7 (a) R 1 (\xff\n) S 3 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let process = parse(7, stat).unwrap();
        assert_eq!((process.parent, process.key.start_ticks), (3, 4711));
        assert!(identify(std::process::id()).is_some());
    }

    proptest! {
        #[test]
        fn any_stat_is_parsed_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(1, &bytes);
        }

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
