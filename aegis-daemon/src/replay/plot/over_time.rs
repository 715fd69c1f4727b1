//! Memory and SM activity of the whole machine over time.

use super::axis;
use super::svg::{Anchor, Svg, colour};
use crate::replay::Outcome;
use crate::replay::outcome::Point;

const WIDTH: f64 = 1_100.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 84.0;
const PANEL: f64 = 220.0;
const GAP: f64 = 54.0;
const MARKS: f64 = 12.0;
/// Points of a line: about two pixels each.
const BINS: usize = 500;

/// What is shown of a GPU, a share of 1.
type Figure<'a> = &'a dyn Fn(&Point) -> f64;

/// Two panels, memory in use and SM activity, both means over the GPUs as shares of what there is;
/// a line per policy. Outcomes need their series.
#[must_use]
pub fn over_time(title: &str, gpu_memory: u64, outcomes: &[(&str, &Outcome)]) -> String {
    let mut svg = Svg::new(WIDTH);
    svg.text("title", (LEFT, 26.0), Anchor::Start, title);
    let mut x = LEFT;
    for (place, (policy, _)) in outcomes.iter().enumerate() {
        svg.bar(&colour(place), [x, 38.0, 14.0, 8.0], policy);
        svg.text("", (x + 20.0, 46.0), Anchor::Start, policy);
        x += 40.0 + policy.chars().count() as f64 * 7.0;
    }
    let lasted = outcomes.iter().map(|(_, outcome)| end_ms(outcome)).max();
    let end = lasted.unwrap_or(0).max(1_000);
    let memory = gpu_memory.max(1) as f64;
    let panels: [(&str, Figure<'_>); 2] = [
        ("memory in use", &|point| point.used as f64 / memory),
        ("SM activity", &|point| point.sm_active),
    ];
    let mut top = TOP;
    for (name, figure) in panels {
        let y_of = |share: f64| top + (1.0 - share.clamp(0.0, 1.0)) * PANEL;
        svg.text("", (LEFT, top - 10.0), Anchor::Start, name);
        svg.rect("lane", [LEFT, top, WIDTH - LEFT - RIGHT, PANEL]);
        for percent in [0, 25, 50, 75, 100] {
            let y = y_of(f64::from(percent) / 100.0);
            svg.line("grid", (LEFT, y), (WIDTH - RIGHT, y));
            let text = format!("{percent} %");
            svg.text("soft", (LEFT - 8.0, y + 4.0), Anchor::End, &text);
        }
        for (at, text) in axis::times(end as f64 / 1e3, MARKS) {
            let x = LEFT + at * 1e3 / end as f64 * (WIDTH - LEFT - RIGHT);
            svg.text("soft", (x, top + PANEL + 18.0), Anchor::Middle, &text);
        }
        for (place, (_, outcome)) in outcomes.iter().enumerate() {
            let means = means(outcome, end, figure);
            let points: Vec<(f64, f64)> = means
                .into_iter()
                .enumerate()
                .map(|(bin, mean)| {
                    let share = (bin as f64 + 0.5) / BINS as f64;
                    (LEFT + share * (WIDTH - LEFT - RIGHT), y_of(mean))
                })
                .collect();
            svg.path("", &points, &colour(place));
        }
        top += PANEL + GAP;
    }
    svg.finish(top - GAP + 34.0)
}

/// The mean over time and GPUs in each of [`BINS`] parts of the time, until the last end. A GPU stays
/// as it was seen last.
fn means(outcome: &Outcome, end: u64, figure: Figure<'_>) -> Vec<f64> {
    let width = end as f64 / BINS as f64;
    let mut sums = vec![0.0; BINS];
    let stop = end_ms(outcome) as f64;
    for gpu in 0..outcome.gpus {
        let points: Vec<_> = outcome
            .series
            .iter()
            .filter(|point| point.gpu.0 == gpu)
            .collect();
        for (place, point) in points.iter().enumerate() {
            let next = points.get(place + 1).map_or(stop, |next| next.at_ms as f64);
            let value = figure(point);
            let (mut from, to) = (point.at_ms as f64, next.min(stop));
            while from < to {
                let bin = (from / width).floor();
                let until = ((bin + 1.0) * width).min(to).max(from + 1e-6);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "`as` saturates; beyond the last bin there is none"
                )]
                if let Some(sum) = sums.get_mut(bin as usize) {
                    *sum += value * (until - from) / width;
                }
                from = until;
            }
        }
    }
    let gpus = f64::from(outcome.gpus.max(1));
    let bins = sums.into_iter().enumerate();
    bins.take_while(|(bin, _)| *bin as f64 * width < stop)
        .map(|(_, sum)| sum / gpus)
        .collect()
}

fn end_ms(outcome: &Outcome) -> u64 {
    let ends = outcome.jobs.iter().flat_map(|job| &job.attempts);
    ends.map(|attempt| attempt.ended_ms).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::svg::tests::well_formed;
    use super::*;
    use crate::replay::generate::{Shape, generate};
    use crate::replay::{Case, MachineConfig};

    #[test]
    fn the_mean_is_that_of_the_series() {
        let machine = MachineConfig {
            keep_series: true,
            ..MachineConfig::new(2, 40)
        };
        let trace = generate(Shape::Saturn, 24, 2, 1.0, 4);
        let case = Case {
            trace,
            machine,
            seed: 4,
        };
        let outcome = case.replay("control");
        let end = end_ms(&outcome);
        let busy = means(&outcome, end, &|point| point.sm_active);
        assert_eq!(busy.len(), BINS);
        let mean = busy.iter().sum::<f64>() / BINS as f64;
        let all = means(&outcome, end, &|_| 1.0);
        assert!(all.iter().all(|share| (0.99..=1.01).contains(share)));
        assert!((0.2..0.98).contains(&mean), "{mean}");
        // A line ends with its policy's last job.
        assert_eq!(means(&outcome, 2 * end, &|_| 1.0).len(), BINS / 2);
        let memory = case.machine.gpu_memory;
        let svg = over_time("a<b", memory, &[("control", &outcome)]);
        assert!(well_formed(&svg) && svg.contains("a&lt;b"));
    }
}
