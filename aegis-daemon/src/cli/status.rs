//! `aegis status`: everything about one job.

use aegis_common::id::JobId;
use aegis_common::wire::{JobView, Request, Response};
use clap::Args;

use super::client::Client;
use super::context::Context;
use super::error::{CliError, unexpected};
use super::exit;
use super::job_id::job_id;
use super::render::job as render;

pub(super) const EXAMPLES: &str = "\
Examples:
  aegis status 7
  aegis status 7 --json | jq .state
";

/// Options of `status`.
#[derive(Args)]
pub(super) struct StatusArgs {
    /// The job.
    #[arg(value_name = "ID", value_parser = job_id)]
    job: JobId,
}

/// Shows.
pub(super) fn run(args: &StatusArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let job = view(&mut cx.connect()?, args.job)?;
    if cx.out.json {
        cx.out.document(&job)?;
    } else {
        let text = render::render(&job, &cx.out.style);
        cx.out.text(&text)?;
    }
    Ok(exit::OK)
}

/// Asks for a job.
pub(super) fn view(client: &mut Client, job: JobId) -> Result<JobView, CliError> {
    match client.ask(&Request::Status { job })? {
        Response::Status { job } => Ok(*job),
        _ => Err(unexpected("status")),
    }
}
