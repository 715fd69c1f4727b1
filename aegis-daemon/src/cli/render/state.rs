//! A job's state in a word, and in a sentence.

use aegis_common::job::{Exit, JobState, OomFinal, Outcome, Phase};
use aegis_common::wire::JobView;

use super::super::sanitise::sanitise;
use super::super::style::Paint;
use super::super::user::Users;

/// One word for lists, with its colour.
pub(in crate::cli) fn word(state: &JobState) -> (String, Paint) {
    let (text, paint) = match state {
        JobState::Pending => ("pending", Paint::Middling),
        JobState::Starting => ("starting", Paint::Good),
        JobState::Running {
            phase: Phase::Dormant,
        } => ("dormant", Paint::Middling),
        JobState::Running { .. } => ("running", Paint::Good),
        JobState::Stopping { .. } => ("stopping", Paint::Middling),
        JobState::Done { outcome } => match outcome {
            Outcome::Ok => ("ok", Paint::Good),
            Outcome::Failed {
                exit: Exit::Code(code),
            } => {
                return (format!("failed({code})"), Paint::Bad);
            }
            Outcome::Failed {
                exit: Exit::Signal(signal),
            } => {
                return (format!("killed({signal})"), Paint::Bad);
            }
            Outcome::Failed {
                exit: Exit::Unknown,
            }
            | Outcome::Lost => ("lost", Paint::Bad),
            Outcome::Oom { .. } => ("oom", Paint::Bad),
            Outcome::Cancelled { .. } => ("cancelled", Paint::Middling),
            Outcome::Timeout => ("timeout", Paint::Bad),
            Outcome::StartFailed { .. } => ("not started", Paint::Bad),
        },
    };
    (text.to_owned(), paint)
}

/// How far the observation is, in words.
pub(in crate::cli) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::WarmUp => "no kernel launched yet",
        Phase::Observing => "under observation: its GPU takes no other job yet",
        Phase::Steady => "observed: its GPU may take other jobs",
        Phase::Dormant => {
            "launches nothing: keeps its memory, its GPU may take jobs that can yield"
        }
    }
}

/// How an attempt's main process ended.
pub(in crate::cli) fn exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
        Exit::Unknown => "end not seen".to_owned(),
    }
}

/// The state in a sentence without its subject.
pub(in crate::cli) fn sentence(job: &JobView, users: &mut Users) -> String {
    match &job.state {
        JobState::Pending => match (job.position, job.attempts.len()) {
            (Some(position), 0) => format!("pending, place {position} in the queue"),
            (Some(position), done) => {
                format!(
                    "pending again after {done} {}, place {position} in the queue",
                    if done == 1 { "attempt" } else { "attempts" }
                )
            }
            (None, _) => "pending".to_owned(),
        },
        JobState::Starting => "starting".to_owned(),
        JobState::Running { phase: now } => format!("running; {}", phase(*now)),
        JobState::Stopping { why } => format!("being stopped: {}", sanitise(&why.to_string())),
        JobState::Done { outcome } => outcome_sentence(outcome, users),
    }
}

fn outcome_sentence(outcome: &Outcome, users: &mut Users) -> String {
    match outcome {
        Outcome::Ok => "ended well".to_owned(),
        Outcome::Failed { exit: end } => format!("failed: {}", exit(*end)),
        Outcome::Oom { exit: end, why } => format!(
            "out of GPU memory ({}), final because {}",
            exit(*end),
            match why {
                OomFinal::WasExclusive => "it had its GPUs to itself",
                OomFinal::ExceedsCapacity => "it asked for more than a GPU here has",
                OomFinal::NoRetriesLeft => "no retries were left",
            }
        ),
        Outcome::Cancelled { by } => format!("cancelled by {}", sanitise(users.name(*by))),
        Outcome::Timeout => "stopped at its time limit".to_owned(),
        Outcome::Lost => "lost: its keeper was killed, how the command ended is unknown".to_owned(),
        Outcome::StartFailed { error } => {
            format!("could not be started: {}", sanitise(error))
        }
    }
}
