//! Whose processes are on a GPU.

use std::collections::BTreeMap;

use aegis_common::event::{ForeignProcess, GpuSample};
use aegis_common::id::JobId;

use super::event::RawSample;
use crate::lease;

/// What `/proc` tells about a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Its effective uid.
    pub uid: Option<u32>,
    /// Its command name.
    pub command: Option<String>,
}

/// Reads `/proc` for [`attribute`].
#[must_use]
pub fn process_info(pid: u32) -> ProcessInfo {
    ProcessInfo {
        uid: lease::effective_uid(pid).ok(),
        command: lease::command(pid),
    }
}

/// Matches the processes of a sample with jobs; `describe` is only asked about strangers.
///
/// A GPU whose processes cannot be told apart must not be shared (invariant 6). The core knows no
/// "unknown" list, but it never takes a sample without activity for an idle GPU: so the activity
/// is withheld.
#[must_use]
pub fn attribute(
    raw: RawSample,
    belongs: impl Fn(u32) -> Option<JobId>,
    describe: impl Fn(u32) -> ProcessInfo,
) -> GpuSample {
    let known = raw.processes.is_some();
    let mut jobs: BTreeMap<JobId, u64> = BTreeMap::new();
    let mut foreign = Vec::new();
    for (pid, bytes) in raw.processes.into_iter().flatten() {
        if let Some(job) = belongs(pid) {
            let sum = jobs.entry(job).or_default();
            *sum = sum.saturating_add(bytes);
        } else {
            let ProcessInfo { uid, command } = describe(pid);
            foreign.push(ForeignProcess {
                pid,
                uid,
                command,
                bytes,
            });
        }
    }
    GpuSample {
        gpu: raw.gpu,
        sm_active: raw.sm_active.filter(|_| known),
        sm_occupancy: raw.sm_occupancy.filter(|_| known),
        dram_active: raw.dram_active.filter(|_| known),
        used: raw.used,
        foreign,
        jobs: jobs.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use aegis_common::id::GpuIndex;

    use super::*;

    fn raw(processes: Option<Vec<(u32, u64)>>) -> RawSample {
        RawSample {
            gpu: GpuIndex(3),
            sm_active: Some(100),
            sm_occupancy: Some(50),
            dram_active: Some(20),
            used: Some(900),
            processes,
        }
    }

    fn belongs(pid: u32) -> Option<JobId> {
        (pid < 100).then(|| JobId(u64::from(pid / 10)))
    }

    fn describe(pid: u32) -> ProcessInfo {
        assert!(pid >= 100, "asked about a job's process");
        ProcessInfo {
            uid: Some(pid),
            command: None,
        }
    }

    #[test]
    fn ranks_add_up_and_strangers_are_listed() {
        let list = vec![(10, 5), (11, u64::MAX), (29, 7), (100, 9)];
        let sample = attribute(raw(Some(list)), belongs, describe);
        assert_eq!(sample.jobs, [(JobId(1), u64::MAX), (JobId(2), 7)]);
        let [stranger] = &sample.foreign[..] else {
            panic!("{:?}", sample.foreign)
        };
        assert_eq!(
            (stranger.pid, stranger.uid, stranger.bytes),
            (100, Some(100), 9)
        );
        assert_eq!((sample.sm_active, sample.used), (Some(100), Some(900)));
    }

    #[test]
    fn an_unknown_list_is_not_an_empty_one() {
        let sample = attribute(raw(None), belongs, describe);
        assert_eq!(
            (sample.sm_active, sample.sm_occupancy, sample.dram_active),
            (None, None, None)
        );
        assert_eq!(sample.used, Some(900));
        let sample = attribute(raw(Some(vec![])), belongs, describe);
        assert_eq!(sample.sm_active, Some(100));
    }
}
