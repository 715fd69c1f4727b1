//! The machine it ran on: without it the figures mean little.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// What the figures depend on beside the program.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Host {
    pub(crate) cpus: usize,
    pub(crate) kernel: String,
    /// Load averages of 1, 5 and 15 minutes before the run.
    pub(crate) load_average_before: [f64; 3],
    /// The same after it.
    pub(crate) load_average_after: [f64; 3],
    /// Median of one `fsync` of 4 KiB where the daemon keeps its state, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fsync_floor_ms: Option<f64>,
}

impl Host {
    /// This machine, with the load averages from before the run.
    ///
    /// # Errors
    /// `/proc` is not readable.
    pub(crate) fn after(before: [f64; 3], fsync_floor_ms: Option<f64>) -> Result<Self> {
        Ok(Self {
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel(),
            load_average_before: before,
            load_average_after: load_average()?,
            fsync_floor_ms,
        })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([before, ..], [after, ..]) = (self.load_average_before, self.load_average_after);
        write!(
            f,
            "{} CPUs, Linux {}, load average {before} before and {after} after",
            self.cpus, self.kernel
        )?;
        match self.fsync_floor_ms {
            Some(floor) => write!(f, ", one fsync {floor:.2} ms"),
            None => Ok(()),
        }
    }
}

/// The load averages of 1, 5 and 15 minutes.
///
/// # Errors
/// `/proc` is not readable.
pub(crate) fn load_average() -> Result<[f64; 3]> {
    let text = std::fs::read_to_string("/proc/loadavg").context("/proc/loadavg")?;
    let mut words = text.split_ascii_whitespace().map(str::parse);
    let mut next = || words.next().context("/proc/loadavg is too short");
    Ok([next()??, next()??, next()??])
}

/// The kernel's release.
fn kernel() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    text.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// The monotonic clock, as the stamp program reads it.
pub(crate) fn now_ns() -> i128 {
    let now = clock_gettime(ClockId::Monotonic);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

/// How long one small `fsync` takes in a directory, nanoseconds each.
///
/// # Errors
/// The directory cannot be written.
pub(crate) fn fsyncs(directory: &Path, runs: usize) -> Result<Vec<i128>> {
    use std::io::Write;
    let path = directory.join("fsync");
    let mut file = std::fs::File::create(&path).with_context(|| path.display().to_string())?;
    let mut took = Vec::new();
    for _ in 0..runs {
        file.write_all(&[0; 4096])?;
        let from = now_ns();
        file.sync_all()?;
        took.push(now_ns() - from);
    }
    std::fs::remove_file(&path)?;
    Ok(took)
}

/// A field of `/proc/PID/status` (or of a task's), its first number.
pub(crate) fn status_field(path: &Path, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim_start_matches(':')
        .split_ascii_whitespace()
        .next()?
        .parse()
        .ok()
}
