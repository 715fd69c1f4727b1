//! How text is to look: width, colours, and the present in the reader's zone.

use aegis_common::id::Moment;
use jiff::tz::TimeZone;

/// How text is to look.
#[derive(Clone)]
pub(super) struct Style {
    /// Columns available; `None`: not a terminal, nothing is cut.
    pub width: Option<usize>,
    /// Use colours.
    pub colour: bool,
    /// The present, for durations.
    pub now: Moment,
    /// The zone in which times are shown.
    pub zone: TimeZone,
}

/// A colour that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    /// Headings.
    Bold,
    /// Works.
    Good,
    /// Waits, or works with less.
    Middling,
    /// Does not work.
    Bad,
}

impl Style {
    /// `text` in that colour, if colours are used. `text` must be sanitised already.
    pub(super) fn paint(&self, paint: Paint, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match paint {
            Paint::Bold => "1",
            Paint::Good => "32",
            Paint::Middling => "33",
            Paint::Bad => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// No terminal, 2026-01-02 03:04:05 UTC.
    pub(in crate::cli) fn plain() -> Style {
        Style {
            width: None,
            colour: false,
            now: Moment(1_767_323_045_000),
            zone: TimeZone::UTC,
        }
    }

    #[test]
    fn colours_only_where_wanted() {
        assert_eq!(plain().paint(Paint::Bad, "x"), "x");
        let coloured = Style {
            colour: true,
            ..plain()
        };
        assert_eq!(coloured.paint(Paint::Bad, "x"), "\x1b[31mx\x1b[0m");
    }
}
