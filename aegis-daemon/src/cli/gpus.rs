//! `aegis gpus`: list GPUs and who is on them.

use aegis_common::id::JobId;
use aegis_common::wire::{GpuView, IdleGpu, JobView, Request, Response};
use clap::Args;
use serde::Serialize;

use super::context::Context;
use super::error::{CliError, unexpected};
use super::exit;
use super::render::gpu as render;

pub(super) const EXAMPLES: &str = "\
Available is what can still be promised: the GPU's memory less promises to jobs, use outside AEGIS, \
and the guard that is kept free.

A job that keeps a GPU for longer than jobs.idle_after without using it is marked idle: it holds no \
memory there, or launches nothing.

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
    idle: Vec<Idle>,
}

/// A GPU that a running job keeps without using it.
#[derive(Serialize)]
struct Idle {
    job: JobId,
    #[serde(flatten)]
    idle: IdleGpu,
}

/// Lists.
pub(super) fn run(_: &GpusArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let mut client = cx.connect()?;
    let Response::Gpus { gpus } = client.ask(&Request::Gpus)? else {
        return Err(unexpected("gpus"));
    };
    // Residents are numbers; people know them by name and owner.
    let request = Request::Queue {
        all: false,
        uid: None,
        limit: None,
    };
    let Response::Queue(queue) = client.ask(&request)? else {
        return Err(unexpected("queue"));
    };
    if cx.out.json {
        let of_job = |job: &JobView| {
            let id = job.id;
            let idle = job.idle.clone().into_iter();
            idle.map(move |idle| Idle { job: id, idle })
        };
        let idle = queue.jobs.iter().flat_map(of_job).collect();
        cx.out.document(&Document { gpus, idle })?;
        return Ok(exit::OK);
    }
    let text = render::render(&gpus, &queue.jobs, &cx.out.style);
    cx.out.text(&text)?;
    Ok(exit::OK)
}
