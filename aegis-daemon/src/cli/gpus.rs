//! `aegis gpus`: list GPUs and who is on them.

use aegis_common::wire::{GpuView, Request, Response};
use clap::Args;
use serde::Serialize;

use super::error::{CliError, unexpected};
use super::render::gpu as render;
use super::{Context, exit};

pub(super) const EXAMPLES: &str = "\
Available is what can still be promised: the GPU's memory less promises to jobs, use outside AEGIS, \
and the guard that is kept free.

Examples:
  aegis gpus
  aegis gpus --json | jq '.gpus[] | {index, available}'
";

/// Options of `gpus`.
#[derive(Args)]
pub(super) struct GpusArgs {}

/// The `--json` document.
#[derive(Serialize)]
struct Document {
    gpus: Vec<GpuView>,
}

/// Lists.
pub(super) fn run(_: &GpusArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let mut client = cx.connect()?;
    let Response::Gpus { gpus } = client.ask(&Request::Gpus)? else {
        return Err(unexpected("gpus"));
    };
    if cx.out.json {
        cx.out.document(&Document { gpus })?;
        return Ok(exit::OK);
    }
    // Residents are numbers; people know them by name and owner.
    let request = Request::Queue {
        all: false,
        uid: None,
        limit: None,
    };
    let Response::Queue(queue) = client.ask(&request)? else {
        return Err(unexpected("queue"));
    };
    let text = render::render(&gpus, &queue.jobs, &cx.out.style);
    cx.out.text(&text)?;
    Ok(exit::OK)
}
