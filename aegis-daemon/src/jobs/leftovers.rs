//! Ending what a killed keeper left behind.
//!
//! The kernel kills the main process with its keeper. Its descendants are found by the job's token
//! in their environment, by descent from those, and by the kernel's set where it has one.

use std::io;
use std::time::Duration;

use super::environment::value;
use super::tree::{self, Process};
use aegis_common::abi::env;
use aegis_common::bytes::ByteString;

/// Between two looks; doubles up to [`SLOWEST`].
const FASTEST: Duration = Duration::from_millis(5);
/// See [`FASTEST`]. A process may take seconds to die in a driver.
const SLOWEST: Duration = Duration::from_millis(500);

/// Kills the job's processes, as `find` finds them, until none is left.
pub(crate) async fn end(find: impl Fn() -> io::Result<Vec<Process>>) {
    let mut delay = FASTEST;
    loop {
        let (found, error) = tree::freeze_and_kill(&find);
        match error {
            None if found == 0 => return,
            None => {}
            Some(error) => tracing::warn!("ending processes without a keeper: {error}"),
        }
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(SLOWEST);
    }
}

/// The job's processes that live: parents before children among descendants.
pub(crate) fn find(token: &[u8; 32]) -> io::Result<Vec<Process>> {
    let all = tree::list()?;
    let mut found: Vec<Process> = all
        .iter()
        .filter(|process| !process.zombie && carries(process.key.pid, token))
        .copied()
        .collect();
    let roots: Vec<u32> = found.iter().map(|process| process.key.pid).collect();
    let below = tree::descendants(&all, &roots);
    found.extend(below.into_iter().filter(|process| !process.zombie));
    Ok(found)
}

/// Whether the process was started with the token in its environment. Zombies have none.
pub(crate) fn carries(pid: u32, token: &[u8; 32]) -> bool {
    token_of(pid).is_some_and(|found| found == *token)
}

/// The token in a process's environment.
pub(crate) fn token_of(pid: u32) -> Option<[u8; 32]> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let entry = ByteString(entry.to_vec());
        value(&entry, env::JOB_TOKEN)?.try_into().ok()
    })
}
