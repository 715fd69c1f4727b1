//! A mix submitted to a private daemon through the command line.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use aegis_common::id::JobId;
use aegis_common::job::JobState;
use anyhow::{Context, Result, bail};
use e2e::World;

use super::mix::{Job, Mix};
use super::table::Table;

/// Longest time a mix may take; beyond it something hangs.
const PATIENCE: Duration = Duration::from_secs(170);

/// How GPUs are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// By the scheduler.
    Shared,
    /// One job at a time on each GPU.
    Exclusive,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// Before the first submission, ns of `CLOCK_MONOTONIC`.
    pub(crate) from_ns: u64,
    /// In the order of the mix.
    pub(crate) jobs: Vec<JobId>,
    /// What `aegis explain` said of a job that waited because its GPU was busy.
    pub(crate) refusal: Option<String>,
}

/// Where a job writes what it did.
pub(crate) fn progress_file(world: &World, job: &Job) -> PathBuf {
    world.file(&format!("{}.progress", job.name))
}

/// Submits all jobs, watches them, and returns when all are over.
///
/// # Errors
/// A submission was refused, or the mix takes for ever.
pub(crate) fn run(world: &World, mix: &Mix, mode: Mode) -> Result<Run> {
    let start = Instant::now();
    let from_ns = simgpu_core::now_ns();
    let mut jobs = Vec::new();
    for job in &mix.jobs {
        let gpus = job.gpus.to_string();
        let mut options = vec!["--name", job.name, "--gpus", &gpus];
        options.extend(job.options);
        if mode == Mode::Exclusive {
            options.push("--exclusive");
        }
        let command = job.command(world, &progress_file(world, job));
        let id = world
            .submit(&options, &command)
            .with_context(|| format!("submitting {}", job.name))?;
        jobs.push(id);
    }
    let mut table = Table::new(start);
    let mut refusal = None;
    loop {
        let queue = world.queue()?;
        table.show(&queue, &world.gpus()?);
        for view in queue.jobs.iter().filter(|v| v.state == JobState::Pending) {
            if refusal.is_none() && view.waits_for.is_some() {
                refusal = busy_reason(world, view.id)?;
                if let Some(reason) = &refusal {
                    table.note(&format!("{} waits: {reason}", view.name));
                }
            }
        }
        if queue.pending == 0 && queue.running == 0 && all_over(&queue.jobs) {
            break;
        }
        if start.elapsed() > PATIENCE {
            bail!("the mix is not over after {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    table.end();
    Ok(Run {
        from_ns,
        jobs,
        refusal,
    })
}

fn all_over(jobs: &[aegis_common::wire::JobView]) -> bool {
    jobs.iter()
        .all(|view| matches!(view.state, JobState::Done { .. }))
}

/// The words of a pressure blocker, if the job has one.
fn busy_reason(world: &World, job: JobId) -> Result<Option<String>> {
    let explanation = world.explain(job)?;
    let busy = explanation
        .blockers
        .into_iter()
        .find(|b| b.blocker.code() == "pressure");
    Ok(busy.map(|b| format!("{}; {}", b.text, b.clears)))
}
