//! The mix on the real daemon and the simulated driver.

use std::time::{Duration, Instant};

use aegis_common::id::Moment;
use aegis_common::job::Outcome;
use aegis_common::wire::Attempt;
use anyhow::{Context, Result, bail};
use e2e::{GIB, Setup, World};

use super::mix::{ARRIVAL_MS, MIX};
use super::rules::Rules;

/// GPUs of the machine.
pub(super) const GPUS: usize = 2;
/// Memory of each: the one that the interference formula was fitted on.
pub(super) const GPU_GIB: u64 = 40;

/// What became of a job, milliseconds after the first submission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ran {
    pub(super) submitted_ms: u64,
    pub(super) ended_ms: u64,
    /// Running time of all attempts, as replay counts it.
    pub(super) ran_ms: u64,
    pub(super) attempts: usize,
}

/// Submits the mix and waits for the last job's end.
///
/// # Errors
/// The daemon did not start, or a job failed.
pub(super) fn run(rules: Rules) -> Result<Vec<Ran>> {
    let mut setup = rules.configure(Setup::gpus(GPUS, GPU_GIB * GIB));
    setup.show_log = false;
    let world = World::start(setup)?;
    let begin = Instant::now();
    let mut jobs = Vec::new();
    for (index, job) in (0_u64..).zip(&MIX) {
        let due = Duration::from_millis(index * ARRIVAL_MS);
        std::thread::sleep(due.saturating_sub(begin.elapsed()));
        let words = std::iter::once(job.kind).chain(job.options.iter().copied());
        let words: Vec<&str> = words.collect();
        jobs.push(world.submit(&[], &world.workload(&words))?);
    }
    let mut views = Vec::new();
    for job in jobs {
        let (view, outcome) = world.done(job)?;
        if outcome != Outcome::Ok {
            bail!("job {job} ended with {outcome:?}");
        }
        views.push(view);
    }
    let first = views.iter().map(|view| view.submitted).min();
    let first = first.context("the mix is empty")?;
    let since = |moment: Option<Moment>| -> Result<u64> {
        let moment = moment.context("a job that ended has no times")?;
        Ok(moment.0.saturating_sub(first.0))
    };
    let ran = views.iter().map(|view| {
        Ok(Ran {
            submitted_ms: since(Some(view.submitted))?,
            ended_ms: since(view.ended)?,
            ran_ms: ran_ms(&view.attempts)?,
            attempts: view.attempts.len(),
        })
    });
    ran.collect()
}

fn ran_ms(attempts: &[Attempt]) -> Result<u64> {
    let each = attempts.iter().map(|attempt| {
        let span = attempt.started.zip(attempt.ended);
        let (started, ended) = span.context("an attempt of a job that ended has no times")?;
        Ok(ended.millis_since(started))
    });
    each.sum()
}
