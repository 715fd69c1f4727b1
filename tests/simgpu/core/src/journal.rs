//! Journal of driver calls: one file for each process, one JSON object a line.
//!
//! Launches, copies and memsets are not in it, only counted (`layout::Counters`).

use std::fs::{File, OpenOptions, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use crate::clock::now_ns;
use crate::config::JournalMode;
use crate::error::{Error, Result};
use crate::machine::Machine;

/// One driver call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Process, from the file's name.
    #[serde(skip)]
    pub pid: u32,
    /// Position in the process's journal, from 0.
    pub sequence: u64,
    /// When the call returned, ns of `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// Exported name, with suffix.
    pub call: String,
    /// Arguments and outputs that matter, `name=value` separated by spaces.
    pub args: String,
    /// CUresult.
    pub result: i32,
    /// Free bytes of the GPU when an allocation succeeded (after it) or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
}

/// A record without what differs between equal runs: time, pid, and the memory that neighbours left.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Normalised {
    /// Exported name.
    pub call: String,
    /// As [`Record::args`].
    pub args: String,
    /// CUresult.
    pub result: i32,
}

impl Record {
    /// The part that is equal in equal runs.
    pub fn normalised(&self) -> Normalised {
        Normalised {
            call: self.call.clone(),
            args: self.args.clone(),
            result: self.result,
        }
    }
}

/// Writes the journal of the calling process.
pub struct Journal {
    file: Option<File>,
    sequence: AtomicU64,
}

impl Journal {
    /// Opens the journal of a process; if that is impossible or the mode is off, writes nothing.
    pub fn open(machine: &Machine, pid: u32, start_time: u64) -> Self {
        let file = match machine.config().journal {
            JournalMode::Off => None,
            JournalMode::Calls => {
                let path = machine
                    .journal_directory()
                    .join(format!("{pid}-{start_time}.jsonl"));
                let file = OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(&path)
                    .ok();
                file.inspect(|f| drop(f.set_permissions(Permissions::from_mode(0o666))))
            }
        };
        Self {
            file,
            sequence: AtomicU64::new(0),
        }
    }

    /// Whether records are written.
    pub fn enabled(&self) -> bool {
        self.file.is_some()
    }

    /// Appends a record.
    pub fn record(&self, call: &str, args: &str, result: i32, free: Option<u64>) {
        let Some(mut file) = self.file.as_ref() else {
            return;
        };
        let record = Record {
            pid: 0,
            sequence: self.sequence.fetch_add(1, Relaxed),
            time_ns: now_ns(),
            call: call.to_owned(),
            args: args.trim_end().to_owned(),
            result,
            free,
        };
        let Ok(mut line) = serde_json::to_vec(&record) else {
            return;
        };
        line.push(b'\n');
        // One write: lines of threads do not mix, and a killed process leaves whole lines. A full
        // disk loses the record, never the call.
        drop(file.write_all(&line));
    }
}

impl Machine {
    /// All records, process by process in the order of their pids, each in call order.
    pub fn journal(&self) -> Result<Vec<Record>> {
        let directory = self.journal_directory();
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&directory).map_err(Error::io(&directory))? {
            let path = entry.map_err(Error::io(&directory))?.path();
            let name = path
                .file_stem()
                .and_then(|s| s.to_str())
                .unwrap_or_default();
            let numbers = name
                .split_once('-')
                .and_then(|(p, s)| Some((p.parse().ok()?, s.parse().ok()?)));
            if let Some((pid, start_time)) = numbers {
                let key: (u32, u64) = (pid, start_time);
                files.push((key, path));
            }
        }
        files.sort();
        let mut records = Vec::new();
        for ((pid, _), path) in files {
            read_file(&path, pid, &mut records)?;
        }
        Ok(records)
    }

    /// The records of one process.
    pub fn journal_of(&self, pid: u32) -> Result<Vec<Record>> {
        Ok(self
            .journal()?
            .into_iter()
            .filter(|r| r.pid == pid)
            .collect())
    }
}

fn read_file(path: &Path, pid: u32, records: &mut Vec<Record>) -> Result<()> {
    let file = File::open(path).map_err(Error::io(path))?;
    for line in BufReader::new(file).lines() {
        let line = line.map_err(Error::io(path))?;
        let record: Record = serde_json::from_str(&line).map_err(|source| Error::Json {
            path: path.to_owned(),
            source,
        })?;
        records.push(Record { pid, ..record });
    }
    Ok(())
}
