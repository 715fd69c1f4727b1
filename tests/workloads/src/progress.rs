//! The progress file: one JSON line per event, from which tests count steps without trusting anyone.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::error::WorkloadError;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The program runs; no GPU activity yet.
    Start,
    /// The first kernel is queued.
    FirstLaunch,
    /// A training step is done.
    Step,
    /// An epoch's training is done.
    Epoch,
    /// An evaluation is done.
    Eval,
    /// Stopped early on SIGTERM, state saved.
    Checkpoint,
    /// Ended by an out-of-memory error.
    Oom,
    /// All steps done.
    Done,
}

/// One line. Field names are read by tests and by the demo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Line<'a> {
    kind: &'a str,
    pid: u32,
    attempt: &'a str,
    rank: u32,
    step: u64,
    steps_total: u64,
    t_ns: u64,
    event: Event,
}

/// Appends events of one process to a file that other attempts and ranks may append to as well.
#[derive(Debug)]
pub struct Progress {
    file: Option<File>,
    kind: String,
    attempt: String,
    rank: u32,
    steps_total: u64,
}

impl Progress {
    /// Opens `path` for appending (nothing is written anywhere if `None`). `attempt` is
    /// `AEGIS_ATTEMPT`'s value, empty outside AEGIS.
    ///
    /// # Errors
    /// [`WorkloadError::Io`] if the file cannot be opened.
    pub fn open(
        path: Option<&Path>,
        kind: &str,
        attempt: String,
        rank: u32,
        steps_total: u64,
    ) -> Result<Self, WorkloadError> {
        let file = path
            .map(|path| {
                OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(path)
                    .map_err(|e| WorkloadError::io(format!("--progress {}", path.display()), e))
            })
            .transpose()?;
        Ok(Self {
            file,
            kind: kind.to_owned(),
            attempt,
            rank,
            steps_total,
        })
    }

    /// Appends one line with a single `write`, so that lines of several processes do not mix.
    ///
    /// # Errors
    /// [`WorkloadError::Io`], for instance for a full disk.
    pub fn record(&mut self, event: Event, step: u64) -> Result<(), WorkloadError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let line = Line {
            kind: &self.kind,
            pid: std::process::id(),
            attempt: &self.attempt,
            rank: self.rank,
            step,
            steps_total: self.steps_total,
            t_ns: monotonic_ns(),
            event,
        };
        let mut text = serde_json::to_string(&line)
            .map_err(|e| WorkloadError::io("progress line", e.into()))?;
        text.push('\n');
        file.write_all(text.as_bytes())
            .map_err(|e| WorkloadError::io("--progress", e))
    }
}

/// `CLOCK_MONOTONIC` in ns: comparable between the processes of one machine.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The monotonic clock starts at boot: neither part is negative.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_append_across_attempts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress.jsonl");
        for attempt in ["1", "2"] {
            let mut progress =
                Progress::open(Some(&path), "vision", attempt.to_owned(), 0, 60).unwrap();
            progress.record(Event::FirstLaunch, 0).unwrap();
            progress.record(Event::Step, 20).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0]["event"], "first_launch");
        assert_eq!(lines[1]["step"], 20);
        assert_eq!(lines[1]["steps_total"], 60);
        assert_eq!(lines[1]["kind"], "vision");
        assert_eq!(lines[1]["attempt"], "1");
        assert_eq!(lines[2]["attempt"], "2");
        assert_eq!(lines[3]["pid"], std::process::id());
        let times: Vec<u64> = lines.iter().map(|l| l["t_ns"].as_u64().unwrap()).collect();
        assert!(times.is_sorted() && times[0] > 0);
    }

    #[test]
    fn without_a_file_nothing_is_written() {
        let mut progress = Progress::open(None, "llm", String::new(), 0, 1).unwrap();
        progress.record(Event::Done, 1).unwrap();
    }

    #[test]
    fn an_unusable_path_names_the_option() {
        let error = Progress::open(
            Some(Path::new("/nonexistent/p")),
            "llm",
            String::new(),
            0,
            1,
        )
        .unwrap_err();
        assert!(error.to_string().contains("--progress /nonexistent/p"));
    }
}
