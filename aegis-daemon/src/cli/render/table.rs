//! Tables fitted to the terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::super::sanitise::sanitise;
use super::super::style::{Paint, Style};

/// Narrowest a column is cut to.
const MIN_WIDTH: usize = 6;

/// A column's heading and habits.
pub(in crate::cli) struct Column {
    /// Its heading.
    pub title: &'static str,
    /// Numbers stand at the right.
    pub right: bool,
    /// Cut first where space is short; higher goes first, 0 never.
    pub cut: u8,
}

/// Rows of sanitised text.
pub(in crate::cli) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<(String, Option<Paint>)>>,
}

impl Table {
    pub(in crate::cli) fn new(columns: Vec<Column>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row; each cell is sanitised here.
    pub(in crate::cli) fn row(&mut self, cells: Vec<(String, Option<Paint>)>) {
        let clean = |(text, paint): (String, _)| (sanitise(&text), paint);
        self.rows.push(cells.into_iter().map(clean).collect());
    }

    /// As text, a line per row.
    pub(in crate::cli) fn render(&self, style: &Style) -> String {
        let widths = self.widths(style.width);
        let mut out = String::new();
        let titles = self
            .columns
            .iter()
            .map(|column| (column.title, Some(Paint::Bold)));
        self.line(titles, &widths, style, &mut out);
        for row in &self.rows {
            let cells = row.iter().map(|(text, paint)| (text.as_str(), *paint));
            self.line(cells, &widths, style, &mut out);
        }
        out
    }

    fn widths(&self, available: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .map(|column| column.title.width())
            .collect();
        for row in &self.rows {
            for (width, (text, _)) in widths.iter_mut().zip(row) {
                *width = (*width).max(text.width());
            }
        }
        let Some(available) = available else {
            return widths;
        };
        let gaps = 2 * self.columns.len().saturating_sub(1);
        let mut order: Vec<usize> = (0..self.columns.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(self.columns.get(*index).map(|c| c.cut)));
        for index in order {
            let total: usize = widths.iter().sum::<usize>() + gaps;
            let over = total.saturating_sub(available);
            let cuttable = self.columns.get(index).is_some_and(|column| column.cut > 0);
            if let Some(width) = widths.get_mut(index)
                && cuttable
            {
                *width = width.saturating_sub(over).max(MIN_WIDTH.min(*width));
            }
        }
        widths
    }

    fn line<'a>(
        &self,
        cells: impl Iterator<Item = (&'a str, Option<Paint>)>,
        widths: &[usize],
        style: &Style,
        out: &mut String,
    ) {
        let mut line = String::new();
        for (((text, paint), width), column) in cells.zip(widths).zip(&self.columns) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            let text = fit(text, *width);
            let padding = " ".repeat(width.saturating_sub(text.width()));
            let painted = match paint {
                Some(paint) => style.paint(paint, &text),
                None => text,
            };
            if column.right {
                line.push_str(&padding);
                line.push_str(&painted);
            } else {
                line.push_str(&painted);
                line.push_str(&padding);
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// `text` in at most `width` columns, cut with `…`.
pub(in crate::cli) fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used + 1 > width {
            break;
        }
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use aegis_common::id::Moment;
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    fn style(width: Option<usize>) -> Style {
        Style {
            width,
            colour: false,
            now: Moment(0),
            zone: TimeZone::UTC,
        }
    }

    fn table() -> Table {
        let column = |title, right, cut| Column { title, right, cut };
        let mut table = Table::new(vec![
            column("ID", true, 0),
            column("NAME", false, 1),
            column("REASON", false, 2),
        ]);
        table.row(vec![
            ("7".into(), None),
            ("a\x1b数".into(), None),
            ("needs much more memory".into(), None),
        ]);
        table.row(vec![
            ("12".into(), None),
            ("b".into(), None),
            ("".into(), None),
        ]);
        table
    }

    #[test]
    fn columns_line_up_and_escapes_are_visible() {
        assert_eq!(
            table().render(&style(None)),
            "ID  NAME     REASON\n 7  a\\x1b数  needs much more memory\n12  b\n"
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_the_last_column_first() {
        assert_eq!(
            table().render(&style(Some(24))),
            "ID  NAME     REASON\n 7  a\\x1b数  needs much…\n12  b\n"
        );
    }

    #[test]
    fn colour_does_not_disturb_the_columns() {
        let mut coloured = style(None);
        coloured.colour = true;
        let mut table = Table::new(vec![
            Column {
                title: "S",
                right: false,
                cut: 0,
            },
            Column {
                title: "T",
                right: false,
                cut: 0,
            },
        ]);
        table.row(vec![("bad".into(), Some(Paint::Bad)), ("x".into(), None)]);
        assert_eq!(
            table.render(&coloured),
            "\x1b[1mS\x1b[0m    \x1b[1mT\x1b[0m\n\x1b[31mbad\x1b[0m  x\n"
        );
    }

    proptest! {
        #[test]
        fn fitted_text_fits(text: String, width in 0_usize..40) {
            prop_assert!(fit(&sanitise(&text), width).width() <= width);
        }
    }
}
