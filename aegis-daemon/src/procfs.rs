//! What `/proc` says of one process: its identity, its parent, whether it has ended.

use aegis_common::id::ProcessKey;

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
pub(crate) fn parse(pid: u32, stat: &[u8]) -> Option<Process> {
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

#[cfg(test)]
mod tests {
    use super::{identify, parse};
    use proptest::prelude::*;

    #[test]
    fn a_hostile_command_name_does_not_shift_the_fields() {
        let stat = b"7 (a) R 1 (\xff\n) S 3 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let process = parse(7, stat).unwrap();
        assert_eq!((process.parent, process.key.start_ticks), (3, 4711));
        assert!(identify(std::process::id()).is_some());
    }

    #[test]
    fn a_command_name_cannot_shift_the_fields() {
        let stat = b"7 (a) R 1 (b) S 1 7 7 0 -1 4194304 1 0 0 0 1 2 3 4 20 0 1 0 4711 8 9";
        assert_eq!(
            parse(7, stat).map(|process| process.key.start_ticks),
            Some(4711)
        );
        assert_eq!(parse(7, b"7 (a"), None);
    }

    proptest! {
        #[test]
        fn any_stat_is_parsed_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(1, &bytes);
        }
    }
}
