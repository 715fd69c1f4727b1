//! What the training programs say they did: counted by the tests without trusting the daemon.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// One line of a progress file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Line {
    /// Kind of training.
    pub kind: String,
    /// The process.
    pub pid: u32,
    /// `AEGIS_ATTEMPT`, empty outside AEGIS.
    pub attempt: String,
    /// Its rank.
    pub rank: u32,
    /// Training steps done.
    pub step: u64,
    /// Training steps of the whole run.
    pub steps_total: u64,
    /// `CLOCK_MONOTONIC`, ns.
    pub t_ns: u64,
    /// `start`, `first_launch`, `step`, `epoch`, `eval`, `checkpoint`, `oom` or `done`.
    pub event: String,
}

/// A progress file.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// All lines in order.
    pub lines: Vec<Line>,
}

impl Progress {
    /// Whether a run did all its steps and said so.
    #[must_use]
    pub fn completed(&self) -> bool {
        self.lines
            .iter()
            .any(|line| line.event == "done" && line.step == line.steps_total)
    }

    /// Times a process ended for lack of memory (once per attempt and process).
    #[must_use]
    pub fn ooms(&self) -> usize {
        self.lines.iter().filter(|line| line.event == "oom").count()
    }

    /// Start of the first attempt and end of the last, ns of `CLOCK_MONOTONIC`.
    #[must_use]
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        Some((self.lines.first()?.t_ns, self.lines.last()?.t_ns))
    }

    /// From the start of the completed attempt to its end, ns.
    #[must_use]
    pub fn completed_ns(&self) -> Option<u64> {
        let done = self.lines.iter().rfind(|line| line.event == "done")?;
        let start = self
            .lines
            .iter()
            .find(|line| line.event == "start" && line.pid == done.pid)?;
        Some(done.t_ns - start.t_ns)
    }

    /// The attempts that started, in order.
    #[must_use]
    pub fn attempts(&self) -> Vec<&str> {
        let starts = self
            .lines
            .iter()
            .filter(|l| l.event == "start" && l.rank == 0);
        starts.map(|line| line.attempt.as_str()).collect()
    }
}

/// Reads a progress file; one that does not exist is empty. A last line cut short by a kill is
/// left out.
///
/// # Errors
/// It cannot be read, or holds something else.
pub fn read_progress(path: &Path) -> Result<Progress> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let whole = text
        .rfind('\n')
        .map_or("", |end| text.get(..end).unwrap_or(""));
    let lines = whole
        .lines()
        .map(|line| {
            serde_json::from_str(line).with_context(|| format!("{}: `{line}`", path.display()))
        })
        .collect::<Result<_>>()?;
    Ok(Progress { lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &str, pid: u32, step: u64, t: u64) -> String {
        format!(
            "{{\"kind\":\"llm\",\"pid\":{pid},\"attempt\":\"1\",\"rank\":0,\"step\":{step},\
             \"steps_total\":9,\"t_ns\":{t},\"event\":\"{event}\"}}\n"
        )
    }

    #[test]
    fn outcomes_are_read_from_the_lines() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("p");
        assert!(!read_progress(&path)?.completed());
        let text = [
            line("start", 1, 0, 10),
            line("oom", 1, 4, 20),
            line("start", 2, 0, 30),
            line("done", 2, 9, 90),
        ]
        .concat();
        std::fs::write(&path, text + "{\"kind\":")?;
        let progress = read_progress(&path)?;
        assert!(progress.completed());
        assert_eq!(progress.ooms(), 1);
        assert_eq!(progress.span_ns(), Some((10, 90)));
        assert_eq!(progress.completed_ns(), Some(60));
        Ok(())
    }
}
