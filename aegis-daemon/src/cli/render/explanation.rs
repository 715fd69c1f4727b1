//! Why a job is where it is.

use std::fmt::Write;

use aegis_common::job::{JobState, Phase};
use aegis_common::wire::{Explanation, JobView};

use super::super::sanitise::sanitise;
use super::super::style::{Paint, Style};
use super::super::user::Users;
use super::{job, state};

/// Every obstacle with what clears it, or what happened to a job that does not wait.
pub(in crate::cli) fn render(explanation: &Explanation, job: &JobView, style: &Style) -> String {
    let mut out = String::new();
    let head = format!("Job {}: {}", explanation.job, sanitise(&job.name));
    let sentence = state::sentence(job, &mut Users::default());
    let verb = if matches!(explanation.state, JobState::Done { .. }) {
        "is over:"
    } else {
        "is"
    };
    let _ = writeln!(out, "{} {verb} {sentence}", style.paint(Paint::Bold, &head));
    match &explanation.state {
        JobState::Pending => out.push_str(&blockers(explanation, style)),
        JobState::Running { phase } => {
            let _ = writeln!(out, "{}", running(*phase, job));
        }
        JobState::Starting | JobState::Stopping { .. } | JobState::Done { .. } => {}
    }
    if !explanation.history.is_empty() {
        out.push_str("So far:\n");
        for event in &explanation.history {
            let _ = writeln!(out, "  - {}", sanitise(event));
        }
    }
    for attempt in &job.attempts {
        let _ = writeln!(
            out,
            "  attempt {}: {}",
            attempt.number,
            job::summary(attempt, style)
        );
    }
    out
}

/// The obstacles of a waiting job.
pub(in crate::cli) fn blockers(explanation: &Explanation, style: &Style) -> String {
    if explanation.blockers.is_empty() {
        return "Nothing stands in its way: it is about to start.\n".to_owned();
    }
    let mut out = "It waits because of:\n".to_owned();
    for (number, blocker) in explanation.blockers.iter().enumerate() {
        let code = style.paint(Paint::Middling, blocker.blocker.code());
        let _ = writeln!(
            out,
            "  {}. {} [{code}]",
            number + 1,
            sanitise(&blocker.text)
        );
        let _ = writeln!(out, "     {}", sanitise(&blocker.clears));
    }
    out
}

fn running(phase: Phase, job: &JobView) -> String {
    let gpus = job
        .attempts
        .last()
        .map(|attempt| job::gpu_list(&attempt.gpus))
        .unwrap_or_default();
    match phase {
        Phase::WarmUp => format!("It holds GPU {gpus} and has not launched a kernel yet."),
        Phase::Observing => {
            format!(
                "It trains on GPU {gpus}, which takes no other job until its memory has settled."
            )
        }
        Phase::Steady => format!("It trains on GPU {gpus}, which may take further jobs."),
        Phase::Dormant => format!("It holds memory on GPU {gpus} but launches nothing."),
    }
}
