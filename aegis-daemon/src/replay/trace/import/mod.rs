//! Traces others published: one file per format.
//!
//! ```text
//!   text --recognise--> format --parse--> ImportedJob ... --assemble--> Trace
//! ```
//!
//! A file is foreign: whatever is in it, the answer is jobs or an error that names line and field.

mod cells;
mod csv;
mod gavel;
mod muri;
mod philly;
mod published_tests;
mod runtimes;
mod tiresias;

pub use cells::{PairSlowdown, pair_slowdowns};

/// A job as a file tells of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedJob {
    /// Seconds from any beginning; `None`: the file has run times only.
    pub submit_s: Option<f64>,
    /// GPUs it asked for.
    pub gpus: u32,
    /// Its running time, seconds.
    pub duration_s: f64,
    /// The model it trains.
    pub program: Option<String>,
    /// The part of the cluster it ran in. Each has a clock of its own.
    pub cluster: String,
}

/// Why a file is no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// A value cannot be what its field says.
    #[error("line {line}, {field}: {problem}")]
    Field {
        /// From 1.
        line: usize,
        /// The column's name.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The header is of no format.
    #[error("line 1 is no header of a known trace format")]
    Unrecognised,
    /// There is no job.
    #[error("there is no job in it")]
    Empty,
    /// Pairs of programs instead of jobs, or the other way around.
    #[error("{0}")]
    NotATrace(&'static str),
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Microsoft's Philly jobs as recovered from Gavel: virtual cluster, submission, GPUs, time.
    Philly,
    /// One column of run times: Philly's of the Alibaba analysis, Yarn's of Tiresias.
    Runtimes,
    /// Gavel's job traces, separated by tabs.
    Gavel,
    /// Muri's jobs, times in milliseconds.
    Muri,
    /// Tiresias' jobs, times in seconds.
    Tiresias,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Philly,
        Self::Runtimes,
        Self::Gavel,
        Self::Muri,
        Self::Tiresias,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Philly => "philly",
            Self::Runtimes => "runtimes",
            Self::Gavel => "gavel",
            Self::Muri => "muri",
            Self::Tiresias => "tiresias",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format of a file by its first line.
    ///
    /// # Errors
    /// None has such a line.
    pub fn recognise(text: &str) -> Result<Self, ImportError> {
        let first = text.lines().next().ok_or(ImportError::Empty)?;
        if first.trim_start().starts_with('{') {
            return Err(ImportError::NotATrace(
                "it is a JSON document, as of pair throughputs, and no trace",
            ));
        }
        if first.contains('\t') {
            return Ok(Self::Gavel);
        }
        let columns: Vec<&str> = first.split(',').map(str::trim).collect();
        let has = |wanted: &[&str]| wanted.iter().all(|name| columns.contains(name));
        if has(philly::COLUMNS) {
            Ok(Self::Philly)
        } else if has(muri::COLUMNS) {
            Ok(Self::Muri)
        } else if has(tiresias::COLUMNS) {
            Ok(Self::Tiresias)
        } else if matches!(columns.as_slice(), ["runtime" | "duration"]) {
            Ok(Self::Runtimes)
        } else {
            Err(ImportError::Unrecognised)
        }
    }

    /// The jobs of a file, in its order; at least one.
    ///
    /// # Errors
    /// The first line that is not of this format, or there is no job.
    pub fn parse(self, text: &str) -> Result<Vec<ImportedJob>, ImportError> {
        let jobs = match self {
            Self::Philly => philly::parse(text),
            Self::Runtimes => runtimes::parse(text),
            Self::Gavel => gavel::parse(text),
            Self::Muri => muri::parse(text),
            Self::Tiresias => tiresias::parse(text),
        }?;
        if jobs.is_empty() {
            return Err(ImportError::Empty);
        }
        Ok(jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognised_by_their_first_line() {
        for (first, format) in [
            ("vc,submit_time_s,num_gpus,duration_s", Format::Philly),
            ("runtime", Format::Runtimes),
            ("duration", Format::Runtimes),
            ("LM (batch size 5)\tpython3 main.py", Format::Gavel),
            (
                "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time",
                Format::Muri,
            ),
            (
                "job_id,num_gpu,submit_time,iterations,model_name,duration,interval",
                Format::Tiresias,
            ),
        ] {
            assert_eq!(Format::recognise(first), Ok(format), "{first}");
            assert_eq!(Format::named(format.name()), Some(format));
        }
        assert_eq!(Format::recognise("a,b"), Err(ImportError::Unrecognised));
        assert_eq!(Format::recognise(""), Err(ImportError::Empty));
        assert!(matches!(
            Format::recognise("{\"v100\":{}}"),
            Err(ImportError::NotATrace(_))
        ));
    }

    #[test]
    fn a_file_without_jobs_is_an_error() {
        for format in Format::ALL {
            assert!(format.parse("").is_err(), "{format:?}");
        }
        assert_eq!(Format::Runtimes.parse("runtime\n"), Err(ImportError::Empty));
    }
}
