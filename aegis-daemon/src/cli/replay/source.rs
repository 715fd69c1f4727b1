//! The jobs to replay: generated, from a file, or this server's own.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aegis_common::wire::{ErrorCode, Failure};

use super::super::error::hinted;
use crate::config::quantity;
use crate::replay::trace::import::{Format, ImportError, ImportedJob};

/// How `--trace` begins where it means the server's own jobs.
const HISTORY: &str = "history:";
/// Largest file that is read, bytes: a million jobs have less.
const MOST_BYTES: u64 = 256 << 20;

/// What `--trace` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TraceArg {
    /// The jobs that ended within that time on this server.
    History(Duration),
    /// A file, and its format if that was said.
    File(PathBuf, Option<Format>),
}

impl TraceArg {
    /// From `FILE`, `FILE:FORMAT` or `history:SPAN`.
    pub(super) fn parse(text: &OsStr) -> Result<Self, String> {
        if let Some(span) = text.to_str().and_then(|text| text.strip_prefix(HISTORY)) {
            let span = quantity::duration(span).map_err(|_| {
                format!("{span:?} is no span: write history:30d, history:12h or history:2w")
            })?;
            if span.is_zero() {
                return Err("a span of nothing has no jobs: write history:30d".to_owned());
            }
            return Ok(Self::History(span));
        }
        let bytes = text.as_bytes();
        let colon = bytes.iter().rposition(|byte| *byte == b':');
        let parts = colon.and_then(|at| Some((bytes.get(..at)?, bytes.get(at + 1..)?)));
        if let Some((path, format)) = parts
            && let Some(format) = std::str::from_utf8(format).ok().and_then(Format::named)
        {
            let path = PathBuf::from(OsStr::from_bytes(path));
            return Ok(Self::File(path, Some(format)));
        }
        Ok(Self::File(PathBuf::from(text), None))
    }

    /// What is shown as the trace's name.
    pub(super) fn name(&self) -> String {
        match self {
            Self::History(span) => format!("{HISTORY}{}", humantime::format_duration(*span)),
            Self::File(path, _) => path.display().to_string(),
        }
    }
}

/// The jobs of a file.
pub(super) fn import(path: &Path, format: Option<Format>) -> Result<Vec<ImportedJob>, Failure> {
    let text = read(path)?;
    let format = format.map_or_else(|| Format::recognise(&text), Ok);
    format
        .and_then(|format| format.parse(&text))
        .map_err(|error| refused(path, &error))
}

/// A file's text.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    let length = std::fs::metadata(path).map(|meta| meta.len());
    if length.is_ok_and(|length| length > MOST_BYTES) {
        return Err(hinted(
            ErrorCode::BadRequest,
            format!("{} has more than {} MiB", path.display(), MOST_BYTES >> 20),
            "give a part of it",
        ));
    }
    let bytes = std::fs::read(path).map_err(|error| {
        hinted(
            ErrorCode::BadRequest,
            format!("cannot read {}: {error}", path.display()),
            "name a file, or history:30d for the jobs that ended here within 30 days",
        )
    })?;
    String::from_utf8(bytes).map_err(|_| {
        hinted(
            ErrorCode::BadRequest,
            format!("{} is no text", path.display()),
            "unpack it first, if it is compressed",
        )
    })
}

fn refused(path: &Path, error: &ImportError) -> Failure {
    let formats: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
    let hint = match error {
        ImportError::Field { .. } => {
            "correct the line, or say the file's format: --trace FILE:FORMAT".to_owned()
        }
        ImportError::NotATrace(_) => {
            "pair throughputs go with --interference cells=FILE".to_owned()
        }
        ImportError::Unrecognised | ImportError::Empty => {
            format!(
                "the formats are {}: --trace FILE:FORMAT",
                formats.join(", ")
            )
        }
    };
    hinted(
        ErrorCode::BadRequest,
        format!("{}: {error}", path.display()),
        hint,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_may_follow_the_file() {
        let parse = |text: &str| TraceArg::parse(OsStr::new(text));
        let file = |path: &str, format| Ok(TraceArg::File(PathBuf::from(path), format));
        assert_eq!(parse("a.csv"), file("a.csv", None));
        assert_eq!(parse("a.csv:muri"), file("a.csv", Some(Format::Muri)));
        assert_eq!(parse("a:b.csv"), file("a:b.csv", None));
        let month = Duration::from_secs(30 * 86_400);
        assert_eq!(parse("history:30d"), Ok(TraceArg::History(month)));
        for wrong in ["history:", "history:30", "history:soon", "history:0s"] {
            assert!(parse(wrong).unwrap_err().contains("history:30d"), "{wrong}");
        }
    }

    #[test]
    fn a_file_that_is_no_trace_is_refused_with_a_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.csv");
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let failure = import(&path, None).unwrap_err();
            format!("{} / {}", failure.message, failure.hint.unwrap())
        };
        assert!(refused(b"a,b\n").contains("philly, runtimes, gavel"));
        assert!(refused(b"runtime\nlong\n").contains("line 2, runtime"));
        assert!(refused(b"{\"v100\":{}}").contains("cells=FILE"));
        assert!(refused(b"\x1f\x8b\xff").contains("no text"));
        let missing = import(Path::new("/nonexistent/t.csv"), None).unwrap_err();
        assert!(missing.hint.unwrap().contains("history:30d"));
    }
}
