//! `aegis log`: print a job's output.
//!
//! The file is read by this process with its user's rights, never by the daemon. A file or pipe
//! gets the bytes as they are; on a terminal control characters are escaped unless `--raw` says
//! otherwise (a framework prints whatever its input contains).

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use aegis_common::bytes::ByteString;
use aegis_common::id::JobId;
use aegis_common::job::{JobState, Outcome};
use aegis_common::wire::{Attempt, ErrorCode, Failure, JobView};
use clap::Args;
use rustix::fs::{Mode, OFlags};
use serde::Serialize;

use super::args::job_id;
use super::error::{CliError, failure, hinted};
use super::out::Out;
use super::render::sanitise::sanitise_output;
use super::render::shell;
use super::{Context, exit, follow, status};

pub(super) const EXAMPLES: &str = "\
Standard output and error of the job, together. Each attempt has its own log; the last one is shown.
A file or pipe gets the bytes as they are; on a terminal control characters are escaped.

Examples:
  aegis log 7
  aegis log -f 7                         follow it until the job is over, across attempts
  aegis log 7 --attempt 1 | less
";

/// Options of `log`.
#[derive(Args)]
pub(super) struct LogArgs {
    /// The job.
    #[arg(value_name = "ID", value_parser = job_id)]
    job: JobId,
    /// Go on until the job is over; wait for it to start if it has not.
    #[arg(long, short)]
    follow: bool,
    /// This attempt instead of the last one.
    #[arg(long, value_name = "N", conflicts_with = "follow")]
    attempt: Option<u32>,
    /// Do not escape control characters on a terminal: for colours and progress bars.
    #[arg(long)]
    raw: bool,
}

/// The `--json` document: where the bytes are, not the bytes.
#[derive(Serialize)]
struct Document<'a> {
    job: JobId,
    attempt: u32,
    path: &'a ByteString,
    bytes: u64,
}

/// Prints.
pub(super) fn run(args: &LogArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    if args.follow && cx.out.json {
        return Err(CliError::Failure(hinted(
            ErrorCode::BadRequest,
            "--follow and --json exclude each other: --json prints one document",
            "follow the file named by aegis log --json, or leave --json out",
        )));
    }
    let mut client = cx.connect()?;
    let job = status::view(&mut client, args.job)?;
    let escape = cx.out.terminal && !args.raw;
    let mut printer = Printer::new(cx.out, escape);
    if args.follow {
        follow::follow(&mut client, job, &mut printer)?;
        return Ok(exit::OK);
    }
    let attempt = chosen(&job, args.attempt)?;
    if let (
        None,
        JobState::Done {
            outcome: Outcome::StartFailed { error },
        },
    ) = (attempt.started, &job.state)
    {
        return Err(CliError::Failure(failure(
            ErrorCode::NotFound,
            format!(
                "job {} could not be started and has no log: {error}",
                job.id
            ),
        )));
    }
    let mut file = open(&job, attempt)?;
    if cx.out.json {
        let bytes = file
            .metadata()
            .map_err(|error| unreadable(&job, attempt, &error))?
            .len();
        cx.out.document(&Document {
            job: job.id,
            attempt: attempt.number,
            path: &attempt.log,
            bytes,
        })?;
    } else {
        Printer::new(cx.out, escape).copy(&mut file, |error| unreadable(&job, attempt, error))?;
    }
    Ok(exit::OK)
}

fn chosen(job: &JobView, number: Option<u32>) -> Result<&Attempt, Failure> {
    let found = match number {
        Some(number) => job.attempts.iter().find(|attempt| attempt.number == number),
        // An attempt that is only being started has no log yet.
        None => job
            .attempts
            .iter()
            .rfind(|attempt| attempt.started.is_some())
            .or(job.attempts.last()),
    };
    found.ok_or_else(|| match (number, &job.state) {
        (None, JobState::Done { .. }) => failure(
            ErrorCode::NotFound,
            format!("job {} was never started: there is no log", job.id),
        ),
        (None, _) => hinted(
            ErrorCode::NotFound,
            format!("job {} has not started yet: there is no log", job.id),
            format!(
                "aegis log -f {} waits for it, aegis explain {} says why it waits",
                job.id, job.id
            ),
        ),
        (Some(number), _) => failure(
            ErrorCode::NotFound,
            format!(
                "job {} has no attempt {number}: there {} {}",
                job.id,
                if job.attempts.len() == 1 { "is" } else { "are" },
                job.attempts.len()
            ),
        ),
    })
}

/// Where the attempt's log is.
pub(super) fn path(attempt: &Attempt) -> PathBuf {
    Path::new(OsStr::from_bytes(&attempt.log.0)).to_owned()
}

/// Opens the attempt's log.
pub(super) fn open(job: &JobView, attempt: &Attempt) -> Result<File, Failure> {
    open_regular(&path(attempt)).map_err(|error| unreadable(job, attempt, &error))
}

/// The owner may have put a FIFO or a device in its place: opening must neither hang nor act.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// Why a log cannot be read, by whose it is.
pub(super) fn unreadable(job: &JobView, attempt: &Attempt, error: &io::Error) -> Failure {
    let path = shell::word(&attempt.log.0);
    let owner = job
        .user
        .clone()
        .unwrap_or_else(|| format!("uid {}", job.uid));
    match error.kind() {
        io::ErrorKind::PermissionDenied => hinted(
            ErrorCode::Forbidden,
            format!(
                "you may not read the log of job {}, which belongs to {owner}: {path}",
                job.id
            ),
            format!("ask {owner} for it, or read it as root"),
        ),
        io::ErrorKind::NotFound => failure(
            ErrorCode::NotFound,
            format!("the log of job {} is gone: {path}", job.id),
        ),
        _ => failure(
            ErrorCode::NotFound,
            format!("cannot read the log {path}: {error}"),
        ),
    }
}

/// Passes log bytes on, as they are or escaped.
pub(super) struct Printer<'a> {
    out: &'a mut Out,
    escape: bool,
    /// The beginning of a character whose rest has not been read yet.
    pending: Vec<u8>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(out: &'a mut Out, escape: bool) -> Self {
        Self {
            out,
            escape,
            pending: Vec::new(),
        }
    }

    /// Copies what is left of `file`.
    pub(super) fn copy(
        &mut self,
        file: &mut File,
        unreadable: impl Fn(&io::Error) -> Failure,
    ) -> Result<(), CliError> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => self.print(buffer.get(..count).unwrap_or_default())?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(&error).into()),
            }
        }
    }

    fn print(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.escape {
            return self.out.bytes(bytes);
        }
        self.pending.extend_from_slice(bytes);
        // Of text that is cut at the end, the last character waits for its rest.
        let whole = match std::str::from_utf8(&self.pending) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.pending.len(),
        };
        let rest = self.pending.split_off(whole);
        let text = sanitise_output(&String::from_utf8_lossy(&self.pending));
        self.pending = rest;
        self.out.text(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_in_the_logs_place_does_not_hang() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("log");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(open_regular(&fifo).is_err());
        assert!(open_regular(dir.path()).is_err());
    }

    #[test]
    fn escaped_output_survives_cuts_within_a_character() {
        use super::super::out::tests::captured;
        let (mut out, text) = captured(false);
        let mut printer = Printer::new(&mut out, true);
        for byte in "ü\x1b[1m\tx\n数".as_bytes() {
            printer.print(&[*byte]).unwrap();
        }
        assert_eq!(text(), "ü\\x1b[1m\tx\n数");
    }
}
