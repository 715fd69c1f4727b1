//! Where the marks of an axis stand.

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;

/// Times between marks that read well, seconds.
const SPANS: [f64; 17] = [
    1.0,
    5.0,
    10.0,
    30.0,
    MINUTE,
    2.0 * MINUTE,
    5.0 * MINUTE,
    10.0 * MINUTE,
    30.0 * MINUTE,
    HOUR,
    2.0 * HOUR,
    3.0 * HOUR,
    6.0 * HOUR,
    12.0 * HOUR,
    DAY,
    2.0 * DAY,
    7.0 * DAY,
];

/// Marks of a time axis from 0 to `end` seconds, at most about `most`, with their texts.
pub(super) fn times(end: f64, most: f64) -> Vec<(f64, String)> {
    let least = end / most;
    let fitting = SPANS.into_iter().find(|step| *step >= least);
    let step = fitting.unwrap_or_else(|| round_step(least / DAY) * DAY);
    marks(0.0, end, step)
        .map(|at| (at, time(at, step)))
        .collect()
}

/// Marks of an axis of numbers, at most about `most`, with their texts.
pub(super) fn numbers(from: f64, to: f64, most: f64) -> Vec<(f64, String)> {
    let step = round_step((to - from) / most);
    let decimals = if step < 0.1 {
        2
    } else {
        usize::from(step < 1.0)
    };
    marks(from, to, step)
        .map(|at| (at, format!("{at:.decimals$}")))
        .collect()
}

/// The multiples of `step` between two values; none where that makes no sense.
fn marks(from: f64, to: f64, step: f64) -> impl Iterator<Item = f64> {
    const MOST: u32 = 100;
    let first = (from / step).ceil();
    (0..MOST)
        .map(move |n| (first + f64::from(n)) * step)
        .take_while(move |at| *at <= to + step * 1e-6)
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn round_step(least: f64) -> f64 {
    if !(least.is_finite() && least > 0.0) {
        return 1.0;
    }
    let power = 10.0_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0].into_iter().map(|factor| factor * power);
    steps
        .into_iter()
        .find(|step| *step >= least * 0.999)
        .unwrap_or(10.0 * power)
}

fn time(seconds: f64, step: f64) -> String {
    let (unit, name) = if step >= DAY {
        (DAY, "d")
    } else if step >= HOUR {
        (HOUR, "h")
    } else if step >= MINUTE {
        (MINUTE, "min")
    } else {
        (1.0, "s")
    };
    format!("{:.0} {name}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(marks: Vec<(f64, String)>) -> Vec<String> {
        marks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn marks_are_round_and_few() {
        let hours = texts(times(30_000.0, 10.0));
        assert_eq!(
            hours,
            [
                "0 h", "1 h", "2 h", "3 h", "4 h", "5 h", "6 h", "7 h", "8 h"
            ]
        );
        assert_eq!(texts(times(95.0, 4.0)), ["0 s", "30 s", "60 s", "90 s"]);
        assert_eq!(
            texts(numbers(0.58, 1.05, 5.0)),
            ["0.6", "0.7", "0.8", "0.9", "1.0"]
        );
        for end in [0.0, f64::NAN, 1e-9, 1e30, f64::INFINITY] {
            assert!(times(end, 10.0).len() <= 100);
            assert!(numbers(0.0, end, 10.0).len() <= 100);
        }
    }
}
