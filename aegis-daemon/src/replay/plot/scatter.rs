//! Two figures of each policy against each other.

use super::axis;
use super::svg::{Anchor, Svg, colour};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 620.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 60.0;
const MARKS: f64 = 8.0;
/// Room for a label, and a character's width in it.
const LABEL: f64 = 13.0;
const CHARACTER: f64 = 6.4;
/// Share of the range left free beside the outermost dots.
const MARGIN: f64 = 0.08;

/// A policy's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Dot {
    /// What it is called.
    pub label: String,
    /// Its place and half the width of its confidence interval, sideways.
    pub x: (f64, f64),
    /// The same, upwards.
    pub y: (f64, f64),
    /// It is one of ours.
    pub ours: bool,
}

/// The dots with the whiskers of their intervals and their labels.
#[must_use]
pub fn scatter(title: &str, x_title: &str, y_title: &str, dots: &[Dot]) -> String {
    let mut svg = Svg::new(WIDTH);
    svg.text("title", (LEFT, 26.0), Anchor::Start, title);
    let xs = Scale::of(dots.iter().map(|dot| dot.x), LEFT, WIDTH - RIGHT);
    let ys = Scale::of(dots.iter().map(|dot| dot.y), HEIGHT - BOTTOM, TOP);
    for (at, text) in axis::numbers(xs.from, xs.to, MARKS) {
        let x = xs.place(at);
        svg.line("grid", (x, TOP), (x, HEIGHT - BOTTOM));
        svg.text("soft", (x, HEIGHT - BOTTOM + 18.0), Anchor::Middle, &text);
    }
    for (at, text) in axis::numbers(ys.from, ys.to, MARKS) {
        let y = ys.place(at);
        svg.line("grid", (LEFT, y), (WIDTH - RIGHT, y));
        svg.text("soft", (LEFT - 8.0, y + 4.0), Anchor::End, &text);
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    svg.text("", (middle, HEIGHT - 16.0), Anchor::Middle, x_title);
    svg.text("", (LEFT - 40.0, TOP - 12.0), Anchor::Start, y_title);
    let (ours, theirs) = (colour(0), colour(5));
    let mut taken: Vec<[f64; 4]> = Vec::new();
    for dot in dots {
        let (x, y) = (xs.place(dot.x.0), ys.place(dot.y.0));
        taken.push([x - 6.0, y - 6.0, x + 6.0, y + 6.0]);
    }
    for dot in dots {
        let (x, y) = (xs.place(dot.x.0), ys.place(dot.y.0));
        let colour = if dot.ours { &ours } else { &theirs };
        let side = |value: f64, half: f64, scale: &Scale| {
            (scale.place(value - half), scale.place(value + half))
        };
        let (left, right) = side(dot.x.0, dot.x.1, &xs);
        let (below, above) = side(dot.y.0, dot.y.1, &ys);
        svg.line("axis", (left, y), (right, y));
        svg.line("axis", (x, below), (x, above));
        let hover = format!(
            "{}: {:.3} ± {:.3}, {:.2} ± {:.2}",
            dot.label, dot.x.0, dot.x.1, dot.y.0, dot.y.1
        );
        svg.dot(colour, (x, y), 5.0, &hover);
        let width = dot.label.chars().count() as f64 * CHARACTER;
        let (label, to_left) = place_label((x, y), width, &mut taken);
        let anchor = if to_left { Anchor::End } else { Anchor::Start };
        if (label.1 - 4.0 - y).abs() > LABEL {
            svg.line("axis", (x, y), (label.0, label.1 - 4.0));
        }
        svg.text("", label, anchor, &dot.label);
    }
    svg.finish(HEIGHT)
}

/// From values to places.
struct Scale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Scale {
    fn of(values: impl Iterator<Item = (f64, f64)>, start: f64, end: f64) -> Self {
        let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
        for (value, half) in values {
            from = from.min(value - half);
            to = to.max(value + half);
        }
        if !(from.is_finite() && to.is_finite()) {
            (from, to) = (0.0, 1.0);
        }
        let margin = ((to - from) * MARGIN).max(0.01);
        Self {
            from: from - margin,
            to: to + margin,
            start,
            end,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value - self.from) / (self.to - self.from);
        self.start + share * (self.end - self.start)
    }
}

/// A free place beside a dot: its text's position, and whether it stands left of it.
fn place_label((x, y): (f64, f64), width: f64, taken: &mut Vec<[f64; 4]>) -> ((f64, f64), bool) {
    let fits = |[left, top, right, bottom]: [f64; 4], taken: &[[f64; 4]]| {
        left >= LEFT
            && right <= WIDTH
            && taken
                .iter()
                .all(|[l, t, r, b]| right < *l || left > *r || bottom < *t || top > *b)
    };
    let steps = (0..12).map(f64::from);
    let offsets = steps.flat_map(|step| [step * LABEL, -step * LABEL]);
    for offset in offsets {
        for to_left in [false, true] {
            let start = if to_left { x - 9.0 - width } else { x + 9.0 };
            let middle = y + offset;
            let space = [
                start,
                middle - LABEL / 2.0,
                start + width,
                middle + LABEL / 2.0,
            ];
            if fits(space, taken) {
                taken.push(space);
                let at = if to_left { x - 9.0 } else { x + 9.0 };
                return ((at, middle + 4.0), to_left);
            }
        }
    }
    ((x + 9.0, y + 4.0), false)
}

#[cfg(test)]
mod tests {
    use super::super::svg::tests::well_formed;
    use super::*;

    #[test]
    fn labels_of_dots_in_one_place_do_not_cover_each_other() {
        let mut taken = Vec::new();
        let places: Vec<_> = (0..8)
            .map(|_| place_label((300.0, 300.0), 80.0, &mut taken))
            .collect();
        for (n, (one, left)) in places.iter().enumerate() {
            for (other, other_left) in places.iter().skip(n + 1) {
                assert!(left != other_left || (one.1 - other.1).abs() >= LABEL);
            }
        }
    }

    #[test]
    fn every_policy_has_its_dot_and_label() {
        let dot = |label: &str, x, y| Dot {
            label: label.to_owned(),
            x: (x, 0.02),
            y: (y, 0.1),
            ours: label == "control",
        };
        let dots = [
            dot("exclusive", 1.0, 1.0),
            dot("control", 0.7, 1.8),
            dot("a<b", 0.7, 1.8),
        ];
        let svg = scatter("t", "makespan", "slowdown", &dots);
        assert!(well_formed(&svg));
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains(">control</text>") && svg.contains(">a&lt;b</text>"));
        assert!(well_formed(&scatter("t", "x", "y", &[])));
    }
}
