//! `aegis wait`: wait for jobs to end.

use std::io::IsTerminal;

use aegis_common::id::JobId;
use aegis_common::job::{JobState, Outcome};
use aegis_common::wire::{JobView, Request, Response};
use clap::Args;
use serde::Serialize;

use super::client::Client;
use super::context::Context;
use super::error::{CliError, unexpected, warn};
use super::job_id::job_id;
use super::render::{state, time};
use super::sanitise::sanitise;
use super::user::Users;
use super::{exit, status};

pub(super) const EXAMPLES: &str = "\
The exit code is that of the first job listed that did not end well, 0 if all did (see \
aegis help exit-codes). Lines come in the order of the ids. Ctrl-C stops the waiting, not the jobs.

Examples:
  aegis wait 7 && python evaluate.py
  aegis wait 7 8 9
";

/// Options of `wait`.
#[derive(Args)]
pub(super) struct WaitArgs {
    /// The jobs.
    #[arg(value_name = "ID", required = true, value_parser = job_id)]
    jobs: Vec<JobId>,
}

/// The `--json` document.
#[derive(Serialize)]
struct Document {
    jobs: Vec<JobView>,
}

/// Waits.
pub(super) fn run(args: &WaitArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let mut client = cx.connect()?;
    // An unknown id is to be reported now, not when the jobs before it have ended.
    for job in &args.jobs {
        status::view(&mut client, *job)?;
    }
    if std::io::stderr().is_terminal() {
        warn("waiting; Ctrl-C stops the waiting, not the jobs");
    }
    let mut ended = Vec::new();
    for job in &args.jobs {
        let view = for_one(&mut client, *job)?;
        if !cx.out.json {
            cx.out.text(&line(&view))?;
        }
        ended.push(view);
    }
    let first_failure = ended.iter().map(code).find(|code| *code != exit::OK);
    if cx.out.json {
        cx.out.document(&Document { jobs: ended })?;
    }
    Ok(first_failure.unwrap_or(exit::OK))
}

/// The job as it ended.
pub(super) fn for_one(client: &mut Client, job: JobId) -> Result<JobView, CliError> {
    match client.ask(&Request::Wait { jobs: vec![job] })? {
        Response::Jobs { jobs } => jobs.into_iter().next().ok_or_else(|| unexpected("wait")),
        _ => Err(unexpected("wait")),
    }
}

/// The outcome in a line.
pub(super) fn line(job: &JobView) -> String {
    let took = match (job.first_started, job.ended) {
        (Some(start), Some(end)) => format!(" after {}", time::span(end.millis_since(start))),
        _ => String::new(),
    };
    let sentence = state::sentence(job, &mut Users::default());
    format!(
        "job {} ({}): {sentence}{took}\n",
        job.id,
        sanitise(&job.name)
    )
}

/// The exit code for one job.
pub(super) fn code(job: &JobView) -> u8 {
    match &job.state {
        JobState::Done { outcome } => exit::of(outcome),
        // The daemon answers when it is over; anything else means nobody knows how.
        _ => exit::of(&Outcome::Lost),
    }
}
