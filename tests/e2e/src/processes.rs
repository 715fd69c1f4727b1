//! The processes of a world: found through `/proc`, ended without exception.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// Parent and state of a process.
fn stat(pid: u32) -> Option<(u32, char, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, field 2, may hold anything, so count from its closing parenthesis.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    Some((
        fields.get(1)?.parse().ok()?,
        fields.first()?.chars().next()?,
        fields.get(19)?.parse().ok()?,
    ))
}

/// Whether the process exists and is no zombie.
#[must_use]
pub fn alive(pid: u32) -> bool {
    stat(pid).is_some_and(|(_, state, _)| !matches!(state, 'Z' | 'X'))
}

/// When the process started: field 22 of its stat file.
#[must_use]
pub fn start_ticks(pid: u32) -> Option<u64> {
    stat(pid).map(|(_, _, start)| start)
}

/// Sends a signal; a process that is gone already is no error.
pub fn kill(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // ESRCH: gone, which is what was wanted.
        let _ = kill_process(pid, signal);
    }
}

/// All live processes below `root`, children before grandchildren.
#[must_use]
pub fn descendants(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(pid) = pid
            && let Some((parent, _, _)) = stat(pid)
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            found.push(*child);
            open.push(*child);
        }
    }
    found.retain(|pid| alive(*pid));
    found
}

/// Ends, when dropped, every process that was started below this one and mentions a directory.
///
/// The test process is made a subreaper, so that keepers whose daemon died, and whatever else lost
/// its parent, are found below it.
#[derive(Debug)]
pub struct Guard {
    directory: PathBuf,
}

impl Guard {
    /// Guards the processes whose command line, environment or working directory mention
    /// `directory`, and all their descendants.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        // Fails only for a kernel before 3.4.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        Self {
            directory: directory.to_owned(),
        }
    }

    /// The live processes of the world.
    #[must_use]
    pub fn members(&self) -> Vec<u32> {
        let mut found = Vec::new();
        for pid in descendants(std::process::id()) {
            if self.mentions(pid) && !found.contains(&pid) {
                found.push(pid);
            }
        }
        for pid in found.clone() {
            for below in descendants(pid) {
                if !found.contains(&below) {
                    found.push(below);
                }
            }
        }
        found
    }

    fn mentions(&self, pid: u32) -> bool {
        use std::os::unix::ffi::OsStrExt;
        let needle = self.directory.as_os_str().as_bytes();
        let contains = |bytes: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
        ["cmdline", "environ"]
            .iter()
            .any(|file| std::fs::read(format!("/proc/{pid}/{file}")).is_ok_and(|b| contains(&b)))
            || std::fs::read_link(format!("/proc/{pid}/cwd"))
                .is_ok_and(|cwd| cwd.starts_with(&self.directory))
    }

    /// Ends them all.
    pub fn end_all(&self) {
        // A tree may grow while it is being cut down: repeat until a look finds nobody.
        for _ in 0..1000 {
            let members = self.members();
            if members.is_empty() {
                return;
            }
            for pid in members {
                kill(pid, Signal::KILL);
                if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                    // Orphans are our children now; others are their parent's to reap.
                    let _ = waitpid(Some(pid), WaitOptions::NOHANG);
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_tree_that_lost_its_root_is_found_and_ended() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let guard = Guard::new(dir.path());
        // The shell exits at once and leaves a grandchild without parent.
        let status = Command::new("sh")
            .args(["-c", "(cd /; exec sleep 1000) >/dev/null 2>&1 &"])
            .env("WORLD", dir.path())
            .status()?;
        assert!(status.success());
        let members = crate::until("the orphan", || {
            let members = guard.members();
            Ok((!members.is_empty()).then_some(members))
        })?;
        drop(guard);
        assert!(members.iter().all(|pid| !alive(*pid)));
        Ok(())
    }
}
