//! Everything about one job.

use std::fmt::Write;
use std::time::Duration;

use aegis_common::id::GpuIndex;
use aegis_common::job::JobState;
use aegis_common::reason::bytes;
use aegis_common::wire::{Attempt, JobView};

use super::super::sanitise::sanitise;
use super::super::style::{Paint, Style};
use super::super::user::Users;
use super::{shell, state, time};
use crate::config::quantity::show_duration;
use crate::config::signal;

/// Characters of a command that are shown.
const SHOWN_CHARS: usize = 4_000;

/// `0,1`.
pub(in crate::cli) fn gpu_list(gpus: &[GpuIndex]) -> String {
    let list: Vec<String> = gpus.iter().map(ToString::to_string).collect();
    list.join(",")
}

/// The full picture.
pub(in crate::cli) fn render(job: &JobView, style: &Style) -> String {
    let mut out = String::new();
    let mut users = Users::default();
    let user = job
        .user
        .clone()
        .unwrap_or_else(|| users.name(job.uid).to_owned());
    let title = format!("Job {}: {}", job.id, sanitise(&job.name));
    let (_, paint) = state::word(&job.state);
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "  {key:<10} {value}");
    };
    line(
        "state",
        style.paint(paint, &state::sentence(job, &mut users)),
    );
    if let (JobState::Pending, Some(reason)) = (&job.state, &job.waits_for) {
        line("waits for", sanitise(reason));
    }
    line("user", sanitise(&user));
    line("command", cut(shell::command(&job.argv)));
    line("directory", shell::word(&job.cwd.0));
    line("asked for", asked(job));
    if let Some(learned) = &job.learned {
        line("known", super::history::learned(learned));
    }
    line("submitted", time::clock(job.submitted, &style.zone));
    if let Some(started) = job.first_started {
        line("started", time::clock(started, &style.zone));
    }
    if let Some(ended) = job.ended {
        line("ended", time::clock(ended, &style.zone));
    }
    let over = matches!(job.state, JobState::Done { .. });
    if let Some(floor) = job.floor.filter(|_| !over) {
        let alone = if job.next_exclusive {
            ", alone on its GPUs"
        } else {
            ""
        };
        line(
            "next try",
            format!("starts with {} on each GPU{alone}", bytes(floor)),
        );
    }
    if job.evictions > 0 {
        line(
            "yielded",
            format!("stopped {} times for older jobs", job.evictions),
        );
    }
    for holding in &job.holdings {
        line(
            &format!("GPU {}", holding.gpu),
            format!(
                "{} used, peak {}, lease {}, overhead reserve {}",
                bytes(holding.used),
                bytes(holding.peak),
                bytes(holding.lease),
                bytes(holding.overhead)
            ),
        );
    }
    if let Some(slowdown) = job.slowdown {
        line("slowdown", super::slowdown::sentence(slowdown));
    }
    for idle in &job.idle {
        line(
            &format!("GPU {}", idle.gpu),
            style.paint(Paint::Middling, &super::idle::sentence(idle, style)),
        );
    }
    for attempt in &job.attempts {
        line(
            &format!("attempt {}", attempt.number),
            summary(attempt, style),
        );
        line("", format!("log {}", shell::word(&attempt.log.0)));
    }
    style.paint(Paint::Bold, &title) + "\n" + &out
}

/// A command may have a megabyte of arguments.
fn cut(command: String) -> String {
    match command.char_indices().nth(SHOWN_CHARS) {
        None => command,
        Some((end, _)) => {
            let left = command.len() - end;
            let shown = command.get(..end).unwrap_or_default();
            format!("{shown}... ({left} more bytes; --json has them)")
        }
    }
}

/// What the submission asked for.
fn asked(job: &JobView) -> String {
    let wants = &job.resources;
    let mut text = format!(
        "{} GPU{}",
        wants.gpus,
        if wants.gpus == 1 { "" } else { "s" }
    );
    if let Some(declared) = wants.gpu_mem {
        let _ = write!(text, " with {} each", bytes(declared));
    }
    if wants.exclusive {
        text.push_str(", exclusively");
    }
    if wants.priority != 0 {
        let _ = write!(text, ", priority {}", wants.priority);
    }
    let _ = write!(text, ", {} retries", wants.retries);
    text.push_str(if wants.requeue {
        ", requeue"
    } else {
        ", no requeue"
    });
    if let Some(suspend) = wants.on_suspend {
        let _ = write!(
            text,
            ", saves and exits within {} on {}",
            show_duration(Duration::from_secs(suspend.grace_s.into())),
            signal::name(suspend.signal)
        );
    }
    if let Some(limit) = wants.time_limit_s {
        let _ = write!(
            text,
            ", at most {}",
            show_duration(Duration::from_secs(limit))
        );
    }
    text
}

/// One attempt in a line.
pub(in crate::cli) fn summary(attempt: &Attempt, style: &Style) -> String {
    let mut text = format!("GPU {}", gpu_list(&attempt.gpus));
    if let Some(started) = attempt.started {
        let until = attempt.ended.unwrap_or(style.now);
        let _ = write!(text, ", {}", time::span(until.millis_since(started)));
    }
    let _ = write!(text, ", peak {}", bytes(attempt.peak));
    if let Some(exit) = attempt.exit {
        let _ = write!(text, ", {}", state::exit(exit));
    }
    if let Some(why) = &attempt.stopped {
        let _ = write!(text, ", {}", sanitise(&why.to_string()));
    }
    if let Some(why) = &attempt.retried {
        let _ = write!(text, "; tried again: {}", sanitise(&why.to_string()));
    }
    text
}
