//! What a starting daemon finds of the attempts of its predecessor.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;

use aegis_common::id::{GpuIndex, JobId};
use aegis_common::job::Exit;
use rustix::fs::FlockOperation;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::keepers::{JobsError, Keepers};
use super::layout::Layout;
use super::record::{self, End, EndRecord, StartRecord};
use super::supervise::Origin;
use super::{boot, leftovers, tree};

/// An attempt found at the daemon's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub attempt: u32,
    /// Its GPUs by the start record; empty if it never started.
    pub gpus: Vec<GpuIndex>,
    /// What became of it.
    pub state: FoundState,
}

/// What became of an attempt while there was no daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundState {
    /// It runs and is watched from now on: `Ended` will follow (or, if its keeper was just about to
    /// execute the command, `StartFailed`).
    Running,
    /// Its tree is gone.
    Ended {
        /// How the main process ended.
        exit: Exit,
    },
    /// Its command could not be started.
    StartFailed {
        /// Why, with the path.
        error: String,
    },
    /// It was expected, but no keeper ever claimed it, and none will.
    NeverStarted,
    /// It was expected and the machine went down within moments of its start: whether its command
    /// ran cannot be told, and nothing of it is left.
    Unrecorded,
    /// Its keeper was killed, and nothing of it is left.
    Lost,
}

impl Keepers {
    /// Looks for all attempts with a start record whose end was not yet
    /// [forgotten](Keepers::forget), and for the expected ones. Those that run are watched from now on.
    /// Call it once, before the first `start`.
    ///
    /// # Errors
    /// The records cannot be read: then it is unknown what runs.
    pub fn adopt(&mut self, expected: &[(JobId, u32)]) -> Result<Vec<Found>, JobsError> {
        // Keepers claim under a shared lock and not without their daemon: once this is granted,
        // whatever the predecessor ordered has a start record or never will.
        let path = self.layout.fence();
        let fence = File::open(&path).map_err(|error| JobsError::io(&path, error))?;
        rustix::fs::flock(&fence, FlockOperation::LockExclusive)
            .map_err(|error| JobsError::io(&path, error.into()))?;
        drop(fence);

        let path = self.layout.boot();
        let rebooted = boot::changed(&self.layout).map_err(|error| JobsError::io(&path, error))?;
        let mut attempts = self.recorded()?;
        attempts.extend(expected);
        let mut found = Vec::new();
        for (job, attempt) in attempts {
            found.push(self.look_at(job, attempt, rebooted)?);
        }
        Ok(found)
    }

    /// The attempts with a start record and without a seen end.
    fn recorded(&self) -> Result<BTreeSet<(JobId, u32)>, JobsError> {
        let mut attempts = BTreeSet::new();
        let names = |path: &std::path::Path| -> Result<Vec<String>, JobsError> {
            let entries = match std::fs::read_dir(path) {
                Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(Vec::new()),
                entries => entries.map_err(|error| JobsError::io(path, error))?,
            };
            entries
                .map(|entry| {
                    let entry = entry.map_err(|error| JobsError::io(path, error))?;
                    Ok(entry.file_name().to_string_lossy().into_owned())
                })
                .collect()
        };
        for name in names(&self.layout.jobs)? {
            let Ok(job) = name.parse().map(JobId) else {
                continue;
            };
            let names: BTreeSet<String> = names(&self.layout.job(job))?.into_iter().collect();
            for name in &names {
                if let Some(number) = name.strip_suffix(".start")
                    && !names.contains(&format!("{number}.seen"))
                    && let Ok(attempt) = number.parse()
                {
                    attempts.insert((job, attempt));
                }
            }
        }
        Ok(attempts)
    }

    fn look_at(&mut self, job: JobId, attempt: u32, rebooted: bool) -> Result<Found, JobsError> {
        let damaged = |error: record::RecordError| JobsError::Record {
            problem: error.to_string(),
        };
        let found = |gpus, state| Found {
            job,
            attempt,
            gpus,
            state,
        };
        let path = self.layout.start_record(job, attempt);
        let start = match record::read::<StartRecord>(&path) {
            Ok(Some(start)) => start,
            Ok(None) if !rebooted => return Ok(found(Vec::new(), FoundState::NeverStarted)),
            Ok(None) => return Ok(found(Vec::new(), FoundState::Unrecorded)),
            // The machine went down before the record's contents were on disk.
            Err(error @ record::RecordError::Damaged { .. }) if rebooted => {
                tracing::warn!("{error}");
                return Ok(found(Vec::new(), FoundState::Unrecorded));
            }
            Err(error) => return Err(damaged(error)),
        };
        // Before the end record is read: a keeper that is gone has written it.
        let keeper = keeper_of(&start);
        let gpus = start.gpus.clone();
        let path = self.layout.end_record(job, attempt);
        let end = match record::read::<EndRecord>(&path) {
            Err(error @ record::RecordError::Damaged { .. }) => {
                tracing::error!("{error}");
                None
            }
            end => end.map_err(damaged)?,
        };
        let state = match (end.map(|record| record.end), keeper) {
            (Some(End::Exited { exit }), _) => FoundState::Ended { exit },
            (Some(End::StartFailed { error }), _) => FoundState::StartFailed { error },
            (None, Some(pidfd)) => {
                let (token, key) = (start.token, start.keeper);
                let record = start;
                self.watch(
                    (job, attempt),
                    token,
                    Some(key),
                    Origin::Adopted { record, pidfd },
                );
                FoundState::Running
            }
            (None, None) => match leftovers::find(&start.token) {
                Ok(left) if left.is_empty() => {
                    tidy(&self.layout, &start);
                    FoundState::Lost
                }
                _ => {
                    let token = start.token;
                    self.watch((job, attempt), token, None, Origin::Orphans);
                    FoundState::Running
                }
            },
        };
        Ok(found(gpus, state))
    }
}

/// The keeper of a start record, if it still lives.
pub(crate) fn keeper_of(start: &StartRecord) -> Option<OwnedFd> {
    if record::boot_id().ok()? != start.boot_id {
        return None;
    }
    let pid = Pid::from_raw(i32::try_from(start.keeper.pid).ok()?)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let process = tree::read(start.keeper.pid)?;
    (process.key == start.keeper && !process.zombie).then_some(pidfd)
}

/// Removes what a killed keeper could not.
pub(crate) fn tidy(layout: &Layout, start: &StartRecord) {
    let _ = std::fs::remove_file(layout.keepers.join(&start.socket));
    let reserved = layout.reserved_end(start.job, start.attempt, start.keeper.pid);
    let _ = std::fs::remove_file(reserved);
}
