//! Replayed policies as a table.

use super::super::replay::figures::Row;
use super::super::style::Style;
use super::table::{Column, Table};
use super::time;

/// One line per policy, in the order given.
pub(in crate::cli) fn table(rows: &[Row], style: &Style) -> String {
    let column = |title, right, cut| Column { title, right, cut };
    let mut table = Table::new(vec![
        column("POLICY", false, 0),
        column("MAKESPAN", true, 0),
        column("MEAN JCT", true, 0),
        column("EXEC", true, 0),
        column("P95 SLOWDOWN", true, 0),
        column("OOM KILLS", true, 0),
        column("REQUEUES", true, 0),
        column("HURT", true, 0),
        column("LOST", true, 0),
        column("UNDONE", true, 0),
    ]);
    for row in rows {
        let figure = |name: &str| row.absolute.get(name).copied().unwrap_or(0.0);
        let count = |name: &str| plain(figure(name));
        table.row(vec![
            (row.policy.to_owned(), None),
            (duration(row, "makespan"), None),
            (duration(row, "jct"), None),
            (duration(row, "exec"), None),
            (format!("{:.2}", figure("p95_slowdown")), None),
            (count("oom_kills"), None),
            (count("requeues"), None),
            (count("incumbents_hurt"), None),
            (format!("{:.1}%", figure("lost_share") * 100.0), None),
            (plain(figure("failed") + figure("unfinished")), None),
        ]);
    }
    table.render(style)
}

/// A time and its ratio to exclusive use, with the confidence interval where there is one.
fn duration(row: &Row, name: &str) -> String {
    let seconds = row.absolute.get(name).copied().unwrap_or(0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates"
    )]
    let shown = time::span((seconds * 1e3) as u64);
    let ratio = row.relative.get(name).copied().unwrap_or(0.0);
    match row.ci95.get(name) {
        Some(half) => format!("{shown} ×{ratio:.2}±{half:.2}"),
        None => format!("{shown} ×{ratio:.2}"),
    }
}

/// A whole number as such, a mean with one decimal.
fn plain(value: f64) -> String {
    if (value - value.round()).abs() < 1e-9 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::style::tests::plain as style;
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn times_come_with_their_ratio() {
        let row = Row {
            policy: "control",
            absolute: BTreeMap::from([("makespan", 29_520.0), ("oom_kills", 1.5)]),
            relative: BTreeMap::from([("makespan", 0.71)]),
            ci95: BTreeMap::from([("makespan", 0.021)]),
        };
        let text = table(&[row], &style());
        assert!(text.contains("control  8h12m ×0.71±0.02  "), "{text}");
        assert!(text.contains("  1.5  "), "{text}");
    }
}
