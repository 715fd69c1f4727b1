//! The list of jobs.

use aegis_common::job::JobState;
use aegis_common::wire::{JobView, QueueView};

use super::super::style::Style;
use super::super::user::Users;
use super::table::{Column, Table};
use super::{state, time};

/// What an empty list says.
const EMPTY: &str = "No jobs run or wait (--all lists finished ones). Submit one: aegis submit -- python train.py\n";

/// The queue as a table and a line of totals.
pub(in crate::cli) fn render(queue: &QueueView, filtered: bool, style: &Style) -> String {
    if queue.jobs.is_empty() {
        return if filtered { "No such jobs.\n" } else { EMPTY }.to_owned();
    }
    let column = |title, right, cut| Column { title, right, cut };
    let mut table = Table::new(vec![
        column("ID", true, 0),
        column("STATE", false, 0),
        column("USER", false, 1),
        column("NAME", false, 2),
        column("GPU", false, 0),
        column("USED/LEASE", true, 0),
        column("TIME", true, 0),
        column("TRY", true, 0),
        column("REASON", false, 3),
    ]);
    let mut users = Users::default();
    for job in &queue.jobs {
        let (word, paint) = state::word(&job.state);
        let user = job
            .user
            .clone()
            .unwrap_or_else(|| users.name(job.uid).to_owned());
        table.row(vec![
            (job.id.to_string(), None),
            (word, Some(paint)),
            (user, None),
            (job.name.clone(), None),
            (gpus(job), None),
            (memory(job), None),
            (time::span(elapsed(job, style)), None),
            (job.attempts.len().max(1).to_string(), None),
            (reason(job, style), None),
        ]);
    }
    let totals = format!("{} running, {} pending\n", queue.running, queue.pending);
    table.render(style) + &totals
}

/// Its GPUs, or how many it waits for.
fn gpus(job: &JobView) -> String {
    match (&job.state, job.attempts.last()) {
        (JobState::Pending, _) | (_, None) => format!("({})", job.resources.gpus),
        (_, Some(attempt)) => super::job::gpu_list(&attempt.gpus),
    }
}

/// GiB used and leased over all its GPUs; what it declared while it waits.
fn memory(job: &JobView) -> String {
    let sum = |part: fn(&aegis_common::job::Holding) -> u64| {
        job.holdings
            .iter()
            .fold(0_u64, |sum, holding| sum.saturating_add(part(holding)))
    };
    if !job.holdings.is_empty() {
        return format!("{}/{}G", gib(sum(|h| h.used)), gib(sum(|h| h.lease)));
    }
    match (&job.state, job.floor.or(job.resources.gpu_mem)) {
        (JobState::Done { .. }, _) => job
            .attempts
            .last()
            .map_or_else(|| "-".to_owned(), |last| gib(last.peak) + "G"),
        (_, Some(bytes)) => format!(
            "-/{}G",
            gib(bytes.saturating_mul(job.resources.gpus.into()))
        ),
        (_, None) => "-".to_owned(),
    }
}

/// GiB with one decimal, rounded down.
fn gib(bytes: u64) -> String {
    let tenths = (u128::from(bytes) * 10) >> 30;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Running time of the last attempt; waiting time of a job that waits.
fn elapsed(job: &JobView, style: &Style) -> u64 {
    let last = job.attempts.last();
    let since = match &job.state {
        JobState::Pending => last
            .and_then(|attempt| attempt.ended)
            .unwrap_or(job.submitted),
        _ => last
            .and_then(|attempt| attempt.started)
            .unwrap_or(job.submitted),
    };
    job.ended.unwrap_or(style.now).millis_since(since)
}

fn reason(job: &JobView, style: &Style) -> String {
    match &job.state {
        JobState::Pending => job.waits_for.clone().unwrap_or_default(),
        JobState::Running { .. } if !job.idle.is_empty() => super::idle::short(job, style),
        JobState::Running { phase } => match phase {
            aegis_common::job::Phase::Steady => String::new(),
            _ => state::phase(*phase).to_owned(),
        },
        JobState::Stopping { why } => why.to_string(),
        JobState::Done {
            outcome: aegis_common::job::Outcome::StartFailed { error },
        } => error.clone(),
        JobState::Starting | JobState::Done { .. } => String::new(),
    }
}
