//! A lane per GPU: which attempt ran when, how it ended, and what the GPU did meanwhile.

use super::axis;
use super::svg::{Anchor, Svg, colour};
use crate::replay::outcome::{AttemptEnd, AttemptOutcome};
use crate::replay::{Case, Outcome};

const WIDTH: f64 = 1_240.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 18.0;
/// Height of an attempt's bar, and of one with the gap below it.
const BAR: f64 = 13.0;
const ROW: f64 = 15.0;
/// Height of the strip of memory and activity.
const STRIP: f64 = 34.0;
/// A bar narrower than this has no number in it.
const NUMBERED: f64 = 16.0;
const MARKS: f64 = 12.0;

/// An attempt on one of its GPUs.
struct Bar<'a> {
    job: usize,
    attempt: &'a AttemptOutcome,
    row: usize,
}

/// The time lines of policies on one case, one above the other on the same time axis. Outcomes need
/// their series for memory and activity.
#[must_use]
pub fn timeline(title: &str, case: &Case, outcomes: &[(&str, &Outcome)]) -> String {
    let mut svg = Svg::new(WIDTH);
    svg.text("title", (LEFT, 24.0), Anchor::Start, title);
    legend(&mut svg, 44.0);
    let end = outcomes
        .iter()
        .map(|(_, outcome)| end_s(outcome))
        .fold(1.0, f64::max);
    let mut y = 58.0;
    for (policy, outcome) in outcomes {
        y = panel(&mut svg, case, policy, outcome, end, y);
    }
    svg.finish(y + 8.0)
}

/// Draws a policy's panel below `top`; where it ends.
fn panel(svg: &mut Svg, case: &Case, policy: &str, outcome: &Outcome, end: f64, top: f64) -> f64 {
    let ended = axis_time(end_s(outcome));
    let text = format!("{policy}: {ended} to the last end");
    svg.text("", (LEFT, top + 14.0), Anchor::Start, &text);
    let first = top + 22.0;
    let mut y = first;
    let mut lanes = Vec::new();
    for gpu in 0..outcome.gpus {
        let bars = bars(outcome, gpu);
        let rows = bars.iter().map(|bar| bar.row + 1).max().unwrap_or(1);
        let height = rows as f64 * ROW + STRIP + 4.0;
        svg.rect("lane", [LEFT, y, WIDTH - LEFT - RIGHT, height]);
        let name = format!("GPU {gpu}");
        svg.text("", (LEFT - 8.0, y + 14.0), Anchor::End, &name);
        lanes.push((gpu, bars, y, height));
        y += height + 6.0;
    }
    for (at, text) in axis::times(end, MARKS) {
        svg.line("grid", (x_of(at, end), first), (x_of(at, end), y - 6.0));
        svg.text(
            "soft small",
            (x_of(at, end), y + 8.0),
            Anchor::Middle,
            &text,
        );
    }
    for (gpu, bars, top, height) in lanes {
        strip(svg, case, outcome, gpu, end, top + height - STRIP);
        for bar in &bars {
            draw(svg, case, bar, end, top + 2.0);
        }
    }
    y + 22.0
}

fn legend(svg: &mut Svg, y: f64) {
    let parts: [(&str, f64); 5] = [
        ("attempts, one colour per job; point at one for more", 335.0),
        ("out of memory", 110.0),
        ("stopped, work lost", 130.0),
        ("suspended, work kept", 155.0),
        ("strip: memory in use (area), SM activity (line)", 0.0),
    ];
    let mut x = LEFT;
    for (place, (text, width)) in parts.into_iter().enumerate() {
        let at = (x + 5.0, y - 4.0);
        match place {
            0 => svg.bar(&colour(0), [x, y - 9.0, 10.0, 10.0], ""),
            1 => cross(svg, at),
            2 => svg.path("evicted", &triangle(at), ""),
            3 => svg.rect("suspended", [x + 2.0, y - 9.0, 6.0, 10.0]),
            _ => svg.rect("memory", [x, y - 9.0, 10.0, 10.0]),
        }
        svg.text("soft", (x + 15.0, y), Anchor::Start, text);
        x += width + 15.0;
    }
}

/// The attempts of a GPU, in as few rows as their overlaps need.
fn bars(outcome: &Outcome, gpu: u32) -> Vec<Bar<'_>> {
    let mut bars: Vec<Bar<'_>> = outcome
        .jobs
        .iter()
        .enumerate()
        .flat_map(|(job, one)| one.attempts.iter().map(move |attempt| (job, attempt)))
        .filter(|(_, attempt)| attempt.gpus.iter().any(|one| one.0 == gpu))
        .map(|(job, attempt)| Bar {
            job,
            attempt,
            row: 0,
        })
        .collect();
    bars.sort_by_key(|bar| (bar.attempt.started_ms, bar.job));
    let mut free_at: Vec<u64> = Vec::new();
    for bar in &mut bars {
        let free = free_at.iter().position(|at| *at <= bar.attempt.started_ms);
        bar.row = free.unwrap_or(free_at.len());
        match free_at.get_mut(bar.row) {
            Some(at) => *at = bar.attempt.ended_ms,
            None => free_at.push(bar.attempt.ended_ms),
        }
    }
    bars
}

fn draw(svg: &mut Svg, case: &Case, bar: &Bar<'_>, end: f64, top: f64) {
    let attempt = bar.attempt;
    let (from, to) = (
        x_of(seconds(attempt.started_ms), end),
        x_of(seconds(attempt.ended_ms), end),
    );
    let y = top + bar.row as f64 * ROW;
    let width = (to - from).max(1.0);
    let hover = hover(case, bar);
    svg.bar(&colour(bar.job), [from, y, width, BAR], &hover);
    if width >= NUMBERED {
        let number = (bar.job + 1).to_string();
        svg.text("on", (from + 3.0, y + 10.0), Anchor::Start, &number);
    }
    let at = (to - 4.0, y + BAR / 2.0);
    match attempt.end {
        AttemptEnd::Done => {}
        AttemptEnd::OutOfMemory { .. } => cross(svg, at),
        AttemptEnd::Stopped { .. } => svg.path("evicted", &triangle(at), ""),
        AttemptEnd::Suspended { .. } => svg.rect("suspended", [at.0 - 3.0, y, 6.0, BAR]),
    }
}

fn hover(case: &Case, bar: &Bar<'_>) -> String {
    let job = case.trace.jobs.get(bar.job);
    let program = job.and_then(|job| case.trace.workloads.get(job.workload));
    let program = program.map_or("", |program| program.name.as_str());
    let (attempt, number) = (bar.attempt, bar.job + 1);
    let ended = match &attempt.end {
        AttemptEnd::Done => "done".to_owned(),
        AttemptEnd::OutOfMemory { bytes, .. } => {
            format!("out of memory at a request of {} MiB", bytes >> 20)
        }
        AttemptEnd::Stopped { why } => format!("{why}; its work is lost"),
        AttemptEnd::Suspended { why } => format!("{why}; its work is kept"),
    };
    format!(
        "job {number}, attempt {}: {program}; {} to {}: {ended}",
        attempt.number,
        axis_time(seconds(attempt.started_ms)),
        axis_time(seconds(attempt.ended_ms))
    )
}

/// Memory in use as an area and SM activity as a line, both from nothing to all.
fn strip(svg: &mut Svg, case: &Case, outcome: &Outcome, gpu: u32, end: f64, top: f64) {
    let bottom = top + STRIP;
    let height = STRIP - 4.0;
    let capacity = case.machine.gpu_memory.max(1) as f64;
    let (mut memory, mut activity) = (vec![(LEFT, bottom)], Vec::new());
    let mut last: Option<(f64, f64)> = None;
    let points = outcome.series.iter().filter(|point| point.gpu.0 == gpu);
    for point in points {
        let x = x_of(seconds(point.at_ms), end);
        let used = bottom - (point.used as f64 / capacity).min(1.0) * height;
        let busy = bottom - point.sm_active.clamp(0.0, 1.0) * height;
        let same = |last: &(f64, f64)| (last.0 - used).abs() < 0.2 && (last.1 - busy).abs() < 0.2;
        if last.as_ref().is_some_and(same) {
            continue;
        }
        if let Some((used, busy)) = last {
            memory.push((x, used));
            activity.push((x, busy));
        }
        memory.push((x, used));
        activity.push((x, busy));
        last = Some((used, busy));
    }
    let stop = x_of(end_s(outcome), end);
    if let Some((used, busy)) = last {
        memory.push((stop, used));
        activity.push((stop, busy));
    }
    memory.push((stop, bottom));
    svg.path("memory", &memory, "");
    svg.path("activity", &activity, "");
}

fn cross(svg: &mut Svg, (x, y): (f64, f64)) {
    const R: f64 = 4.0;
    svg.line("oom", (x - R, y - R), (x + R, y + R));
    svg.line("oom", (x - R, y + R), (x + R, y - R));
}

fn triangle((x, y): (f64, f64)) -> [(f64, f64); 3] {
    [(x - 5.0, y - 4.0), (x + 5.0, y - 4.0), (x, y + 5.0)]
}

fn x_of(at: f64, end: f64) -> f64 {
    LEFT + (at / end).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
}

/// When the last attempt or job was over.
fn end_s(outcome: &Outcome) -> f64 {
    let attempts = outcome.jobs.iter().flat_map(|job| &job.attempts);
    seconds(attempts.map(|one| one.ended_ms).max().unwrap_or(0))
}

fn axis_time(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round();
    format!("{:.0}:{:02.0} h", (minutes / 60.0).floor(), minutes % 60.0)
}

fn seconds(millis: u64) -> f64 {
    millis as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::super::svg::tests::well_formed;
    use super::*;
    use crate::replay::MachineConfig;
    use crate::replay::generate::{Shape, generate};

    fn case() -> Case {
        let mut trace = generate(Shape::Saturn, 24, 2, 1.0, 4);
        for workload in &mut trace.workloads {
            workload.name = format!("<&\"{}", workload.name);
        }
        let machine = MachineConfig {
            keep_series: true,
            ..MachineConfig::new(2, 40)
        };
        Case {
            trace,
            machine,
            seed: 4,
        }
    }

    #[test]
    fn every_attempt_has_a_bar_on_each_of_its_gpus() {
        let case = case();
        let outcome = case.replay("control");
        let svg = timeline("a <b> & c", &case, &[("control", &outcome)]);
        assert!(well_formed(&svg));
        let attempts = outcome.jobs.iter().flat_map(|job| &job.attempts);
        let expected: usize = attempts.map(|attempt| attempt.gpus.len()).sum();
        assert_eq!(svg.matches("<title>job ").count(), expected);
        assert!(svg.contains("a &lt;b&gt; &amp; c"));
        let ooms = outcome
            .jobs
            .iter()
            .flat_map(|job| &job.attempts)
            .filter(|one| matches!(one.end, AttemptEnd::OutOfMemory { .. }));
        let crosses: usize = ooms.map(|attempt| attempt.gpus.len()).sum();
        // The legend has one; each is two lines.
        assert_eq!(svg.matches("class=\"oom\"").count(), 2 * (crosses + 1));
    }

    #[test]
    fn bars_of_a_row_do_not_overlap() {
        let case = case();
        let outcome = case.replay("balanced");
        for gpu in 0..2 {
            let bars = bars(&outcome, gpu);
            for (place, one) in bars.iter().enumerate() {
                let later = bars
                    .iter()
                    .skip(place + 1)
                    .filter(|other| other.row == one.row);
                for other in later {
                    assert!(other.attempt.started_ms >= one.attempt.ended_ms);
                }
            }
        }
    }
}
