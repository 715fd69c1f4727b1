//! `aegis log`: print a job's output.
//!
//! The file is read by this process with its user's rights, never by the daemon. A file or pipe
//! gets the bytes as they are; on a terminal control characters are escaped unless `--raw` says
//! otherwise (a framework prints whatever its input contains).

use aegis_common::bytes::ByteString;
use aegis_common::id::JobId;
use aegis_common::job::{JobState, Outcome};
use aegis_common::wire::{Attempt, ErrorCode, Failure, JobView};
use clap::Args;
use serde::Serialize;

use super::context::Context;
use super::error::{CliError, failure, hinted};
use super::job_id::job_id;
use super::log_file::{open, unreadable};
use super::printer::Printer;
use super::{exit, follow, status};

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
