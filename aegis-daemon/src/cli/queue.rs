//! `aegis queue`: list jobs.

use aegis_common::wire::{Request, Response};
use clap::Args;

use super::context::Context;
use super::error::{CliError, unexpected};
use super::render::queue as render;
use super::{exit, user};

pub(super) const EXAMPLES: &str = "\
Columns: USED/LEASE in GiB over all GPUs of the job, its peak once it is over; GPU in brackets is \
how many a waiting job needs; TIME is the running or waiting time; REASON is the first obstacle, \
and aegis explain ID lists all of them.

Examples:
  aegis queue                            running and waiting jobs
  aegis queue --all --user ana           finished ones too, ana's only
  aegis queue --json | jq '.jobs[].id'
";

/// Options of `queue`.
#[derive(Args)]
pub(super) struct QueueArgs {
    /// Finished jobs too, newest first.
    #[arg(long, short)]
    all: bool,
    /// Only this user's jobs, by name or uid.
    #[arg(long, short, value_name = "USER")]
    user: Option<String>,
    /// With --all: at most this many finished jobs.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u32,
}

/// Lists.
pub(super) fn run(args: &QueueArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let uid = args.user.as_deref().map(user::uid_of).transpose()?;
    let request = Request::Queue {
        all: args.all,
        uid,
        limit: args.all.then_some(args.limit),
    };
    let Response::Queue(queue) = cx.connect()?.ask(&request)? else {
        return Err(unexpected("queue"));
    };
    if cx.out.json {
        cx.out.document(&queue)?;
    } else {
        let text = render::render(&queue, uid.is_some(), &cx.out.style);
        cx.out.text(&text)?;
    }
    Ok(exit::OK)
}
