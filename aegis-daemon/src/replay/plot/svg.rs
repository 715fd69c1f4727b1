//! Elements of an SVG document.

use std::fmt::Write;

/// Colours of text, lines and ground; with the reader's preference for dark ground, others.
const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#24292f}\
.ground{fill:#fff}.soft{fill:#6e7781}.title{font-size:15px;font-weight:600}\
.small{font-size:10px}.on{fill:#fff;font-size:10px}\
.lane{fill:#f2f4f7}.grid{stroke:#d0d7de;stroke-width:1}.axis{stroke:#8c959f;stroke-width:1}\
.memory{fill:#8c959f;fill-opacity:.35}.activity{fill:none;stroke:#b35900;stroke-width:1.2}\
.oom{stroke:#cf222e;stroke-width:2.2;fill:none}.evicted{fill:#bf3989}.suspended{fill:#0969da}\
@media (prefers-color-scheme:dark){\
text{fill:#e6edf3}.on{fill:#fff}.ground{fill:#0d1117}.soft{fill:#9198a1}.lane{fill:#161b22}\
.grid{stroke:#30363d}.axis{stroke:#6e7681}.activity{stroke:#f0883e}.oom{stroke:#ff7b72}\
.evicted{fill:#f778ba}.suspended{fill:#58a6ff}}";

/// Of the colours of bars, dots and lines.
const SATURATION: f64 = 0.58;

/// A document that grows downwards.
pub(super) struct Svg {
    width: f64,
    body: String,
}

/// Where a text's position is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// At its left.
    Start,
    /// In its middle.
    Middle,
    /// At its right.
    End,
}

impl Svg {
    pub(super) fn new(width: f64) -> Self {
        let body = String::new();
        Self { width, body }
    }

    /// The document, of that height.
    pub(super) fn finish(self, height: f64) -> String {
        let (width, body) = (self.width, self.body);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\"><style>{STYLE}</style>\
             <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n{body}</svg>\n"
        )
    }

    /// A rectangle of a class.
    pub(super) fn rect(&mut self, class: &str, [x, y, width, height]: [f64; 4]) {
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        ));
    }

    /// A rounded bar of a colour, which tells `hover` when pointed at.
    pub(super) fn bar(&mut self, colour: &str, [x, y, width, height]: [f64; 4], hover: &str) {
        let hover = escape(hover);
        self.add(format_args!(
            "<rect fill=\"{colour}\" rx=\"2\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"><title>{hover}</title></rect>"
        ));
    }

    /// A line of a class.
    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.path(class, &[from, to], "");
    }

    /// Lines through points, of a class and, if not empty, a colour.
    pub(super) fn path(&mut self, class: &str, points: &[(f64, f64)], colour: &str) {
        let mut commands = String::new();
        for (place, (x, y)) in points.iter().enumerate() {
            let command = if place == 0 { 'M' } else { 'L' };
            let _ = write!(commands, "{command}{x:.1} {y:.1}");
        }
        let style = if colour.is_empty() {
            String::new()
        } else {
            format!(" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"")
        };
        self.add(format_args!(
            "<path class=\"{class}\" d=\"{commands}\"{style}/>"
        ));
    }

    /// A dot of a colour.
    pub(super) fn dot(&mut self, colour: &str, (x, y): (f64, f64), radius: f64, hover: &str) {
        let hover = escape(hover);
        self.add(format_args!(
            "<circle fill=\"{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\">\
             <title>{hover}</title></circle>"
        ));
    }

    /// Text of a class.
    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

/// A colour for the n-th of many: neighbours differ most. Dark enough for white text on it, light
/// enough for dark ground.
pub(super) fn colour(n: usize) -> String {
    // The golden angle spreads any number of hues evenly.
    let hue = (n as f64 * 137.508) % 360.0;
    let lightness = [0.44, 0.36, 0.52].get(n % 3).copied().unwrap_or(0.44);
    let part = |turn: f64| {
        // CSS Color 3, "HSL to RGB": a channel rises, stays and falls along the circle of hues.
        let at = (turn + hue / 30.0) % 12.0;
        let most = SATURATION * f64::min(lightness, 1.0 - lightness);
        let share = lightness - most * f64::min(at - 3.0, 9.0 - at).clamp(-1.0, 1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of 255"
        )]
        let byte = (share * 255.0).round() as u8;
        byte
    };
    // Not `hsl()`: some converters do not know it.
    format!("#{:02x}{:02x}{:02x}", part(0.0), part(8.0), part(4.0))
}

/// Text without anything XML could take for markup or refuse.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether every element is closed and nothing stands where it must not.
    pub(in super::super) fn well_formed(svg: &str) -> bool {
        let mut open = Vec::new();
        let mut rest = svg;
        while let Some((before, after)) = rest.split_once('<') {
            let Some((tag, next)) = after.split_once('>') else {
                return false;
            };
            let quotes = tag.matches('"').count();
            if before.contains('>') || tag.contains('<') || quotes % 2 == 1 {
                return false;
            }
            if let Some(name) = tag.strip_prefix('/') {
                if open.pop() != Some(name) {
                    return false;
                }
            } else if !tag.ends_with('/') {
                open.push(tag.split(' ').next().unwrap_or_default());
            }
            rest = next;
        }
        open.is_empty()
    }

    proptest! {
        #[test]
        fn any_text_is_harmless(text in "\\PC*|.*|[<>&\"'/a-z]*") {
            let mut svg = Svg::new(100.0);
            svg.text("title", (1.0, 2.0), Anchor::End, &text);
            svg.bar("red", [0.0; 4], &text);
            let svg = svg.finish(50.0);
            prop_assert!(well_formed(&svg), "{svg}");
            prop_assert!(!escape(&text).chars().any(char::is_control));
        }
    }

    #[test]
    fn neighbours_have_different_colours() {
        assert!((0..60).all(|n| colour(n) != colour(n + 1)));
        assert_eq!(colour(0), "#b12f2f");
        assert!(!well_formed("<a><b></a></b>") && !well_formed("<a"));
    }
}
