//! `aegis explain`: why a job waits, or what happened to it.

use aegis_common::id::JobId;
use aegis_common::wire::{Request, Response};
use clap::Args;

use super::context::Context;
use super::error::{CliError, unexpected};
use super::job_id::job_id;
use super::render::explanation as render;
use super::{exit, status};

pub(super) const EXAMPLES: &str = "\
Every obstacle is listed with its numbers, a stable code in brackets, and what clears it.

Examples:
  aegis explain 7
  aegis explain 7 --json | jq -r '.blockers[].code'
";

/// Options of `explain`.
#[derive(Args)]
pub(super) struct ExplainArgs {
    /// The job.
    #[arg(value_name = "ID", value_parser = job_id)]
    job: JobId,
}

/// Explains.
pub(super) fn run(args: &ExplainArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let mut client = cx.connect()?;
    let Response::Explained(explanation) = client.ask(&Request::Explain { job: args.job })? else {
        return Err(unexpected("explain"));
    };
    if cx.out.json {
        cx.out.document(&explanation)?;
    } else {
        let job = status::view(&mut client, args.job)?;
        let text = render::render(&explanation, &job, &cx.out.style);
        cx.out.text(&text)?;
    }
    Ok(exit::OK)
}
