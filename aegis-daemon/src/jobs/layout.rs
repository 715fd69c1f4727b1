//! Where the files of an attempt are.
//!
//! ```text
//!   STATE/jobs/                       0711, the daemon's
//!     boot                            the boot in which attempts were last started
//!     fence                           lock: no keeper of a dead daemon claims after adoption began
//!     JOB/                            0711, the daemon's
//!       ATTEMPT.start                 the start record: its creation is the decision to run
//!       ATTEMPT.exit                  the end record
//!       ATTEMPT.seen                  the end is in the journal
//!       ATTEMPT/                      0700, the job's user's
//!         output.log                  standard output and error
//!   RUNTIME/keepers/                  0700, the daemon's
//!     JOB-ATTEMPT-PID.sock            the keeper's control socket
//! ```

use std::path::{Path, PathBuf};

use aegis_common::id::JobId;

/// The directories.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// `STATE/jobs`.
    pub(crate) jobs: PathBuf,
    /// `RUNTIME/keepers`.
    pub(crate) keepers: PathBuf,
}

impl Layout {
    pub(crate) fn new(state_dir: &Path, runtime_dir: &Path) -> Self {
        Self {
            jobs: state_dir.join("jobs"),
            keepers: runtime_dir.join("keepers"),
        }
    }

    pub(crate) fn fence(&self) -> PathBuf {
        self.jobs.join("fence")
    }

    pub(crate) fn boot(&self) -> PathBuf {
        self.jobs.join("boot")
    }

    pub(crate) fn job(&self, job: JobId) -> PathBuf {
        self.jobs.join(job.to_string())
    }

    pub(crate) fn start_record(&self, job: JobId, attempt: u32) -> PathBuf {
        self.job(job).join(format!("{attempt}.start"))
    }

    pub(crate) fn end_record(&self, job: JobId, attempt: u32) -> PathBuf {
        self.job(job).join(format!("{attempt}.exit"))
    }

    /// The end record while it is written; its blocks are reserved before the job starts.
    pub(crate) fn reserved_end(&self, job: JobId, attempt: u32, keeper: u32) -> PathBuf {
        self.job(job).join(format!(".{attempt}.exit.{keeper}"))
    }

    pub(crate) fn seen(&self, job: JobId, attempt: u32) -> PathBuf {
        self.job(job).join(format!("{attempt}.seen"))
    }

    pub(crate) fn output(&self, job: JobId, attempt: u32) -> PathBuf {
        self.job(job).join(attempt.to_string())
    }
}

/// The log's name in an attempt's output directory.
pub(crate) const LOG: &str = "output.log";

/// An attempt's standard output and error.
#[must_use]
pub fn log_path(state_dir: &Path, job: JobId, attempt: u32) -> PathBuf {
    Layout::new(state_dir, Path::new(""))
        .output(job, attempt)
        .join(LOG)
}

/// The name of a keeper's socket.
pub(crate) fn socket_name(job: JobId, attempt: u32, keeper: u32) -> String {
    format!("{job}-{attempt}-{keeper}.sock")
}

/// All keepers that have a socket: job, attempt, pid. Entries of killed keepers may be among them.
///
/// # Errors
/// The directory cannot be read.
pub fn keeper_pids(runtime_dir: &Path) -> std::io::Result<Vec<(JobId, u32, u32)>> {
    let parse = |name: &str| {
        let mut parts = name.strip_suffix(".sock")?.splitn(3, '-');
        let job = JobId(parts.next()?.parse().ok()?);
        Some((
            job,
            parts.next()?.parse().ok()?,
            parts.next()?.parse().ok()?,
        ))
    };
    let mut found: Vec<_> = std::fs::read_dir(runtime_dir.join("keepers"))?
        .filter_map(|entry| parse(entry.ok()?.file_name().to_str()?))
        .collect();
    found.sort_unstable();
    Ok(found)
}
