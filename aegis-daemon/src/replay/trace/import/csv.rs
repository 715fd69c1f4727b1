//! Comma-separated tables with a header. None of the published ones quotes a field.

use super::ImportError;

/// A century in seconds: no job runs longer, and its milliseconds fit 64 bits.
pub(super) const CENTURY_S: f64 = 100.0 * 366.0 * 86_400.0;
/// Most GPUs of one job.
const MOST_GPUS: f64 = 100_000.0;
/// Longest part of a wrong value that is quoted, characters.
const QUOTED: usize = 40;

/// A table's columns and where its rows begin.
pub(super) struct Table<'a> {
    columns: Vec<&'a str>,
    text: &'a str,
}

/// One row.
pub(super) struct Row<'t, 'a> {
    line: usize,
    columns: &'t [&'a str],
    fields: Vec<&'a str>,
}

impl<'a> Table<'a> {
    /// A table that has these columns, in any order.
    pub(super) fn new(text: &'a str, wanted: &[&'static str]) -> Result<Self, ImportError> {
        let header = text.lines().next().ok_or(ImportError::Empty)?;
        let columns: Vec<&str> = header.split(',').map(str::trim).collect();
        if let Some(missing) = wanted.iter().find(|name| !columns.contains(name)) {
            return Err(wrong(1, missing, "there is no such column"));
        }
        Ok(Self { columns, text })
    }

    /// The rows; empty lines are none.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'_, 'a>> {
        let lines = (1..).zip(self.text.lines()).skip(1);
        lines
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(line, text)| Row {
                line,
                columns: &self.columns,
                fields: text.split(',').map(str::trim).collect(),
            })
    }
}

impl<'a> Row<'_, 'a> {
    /// The text in a column.
    pub(super) fn text(&self, field: &'static str) -> Result<&'a str, ImportError> {
        let place = self.columns.iter().position(|name| *name == field);
        let text = place.and_then(|place| self.fields.get(place)).copied();
        text.ok_or_else(|| wrong(self.line, field, "the line ends before it"))
    }

    /// Seconds, from a column that counts `per_second` of its unit in one.
    pub(super) fn seconds(&self, field: &'static str, per_second: f64) -> Result<f64, ImportError> {
        seconds(self.line, field, self.text(field)?, per_second)
    }

    /// GPUs; at least one.
    pub(super) fn gpus(&self, field: &'static str) -> Result<u32, ImportError> {
        gpus(self.line, field, self.text(field)?)
    }

    /// Any number from 0.
    pub(super) fn number(&self, field: &'static str) -> Result<f64, ImportError> {
        number(self.line, field, self.text(field)?, f64::MAX)
    }
}

/// A time of at most a century, in seconds.
pub(super) fn seconds(
    line: usize,
    field: &'static str,
    text: &str,
    per_second: f64,
) -> Result<f64, ImportError> {
    Ok(number(line, field, text, CENTURY_S * per_second)? / per_second)
}

/// A number of GPUs; at least one.
pub(super) fn gpus(line: usize, field: &'static str, text: &str) -> Result<u32, ImportError> {
    let gpus = number(line, field, text, MOST_GPUS)?;
    if gpus < 1.0 || gpus.fract() > 0.0 {
        return Err(wrong(
            line,
            field,
            &format!("{} is no number of GPUs", quoted(text)),
        ));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole and at most MOST_GPUS"
    )]
    Ok(gpus as u32)
}

/// A number between 0 and `most`.
pub(super) fn number(
    line: usize,
    field: &'static str,
    text: &str,
    most: f64,
) -> Result<f64, ImportError> {
    match text.trim().parse::<f64>() {
        Ok(number) if (0.0..=most).contains(&number) => Ok(number),
        Ok(_) => Err(wrong(
            line,
            field,
            &format!("{} is negative or too large", quoted(text)),
        )),
        Err(_) => Err(wrong(
            line,
            field,
            &format!("{} is no number", quoted(text)),
        )),
    }
}

/// An error at a field.
pub(super) fn wrong(line: usize, field: &'static str, problem: &str) -> ImportError {
    ImportError::Field {
        line,
        field,
        problem: problem.to_owned(),
    }
}

fn quoted(text: &str) -> String {
    format!("{:?}", text.chars().take(QUOTED).collect::<String>())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Files with that header whose fields are numbers, words and rubbish.
    pub(in super::super) fn tables(header: &'static str) -> impl Strategy<Value = String> {
        let field = prop_oneof![
            "[0-9]{1,9}",
            "-?[0-9]{1,30}\\.?[0-9]{0,3}",
            "nan|inf|-inf|1e400|-0",
            "[a-z0-9]{0,8}",
            "\\PC{0,6}",
        ];
        let row = prop::collection::vec(field, 0..14).prop_map(|fields| fields.join(","));
        let rows = prop::collection::vec(row, 0..6);
        rows.prop_map(move |rows| format!("{header}\n{}", rows.join("\n")))
    }

    #[test]
    fn errors_name_line_and_field() {
        let text = "a,b\n1,2\n\n3\nx,1e99\n";
        let table = Table::new(text, &["b"]).unwrap();
        let rows: Vec<_> = table.rows().collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0].seconds("b", 1000.0), Ok(0.002));
        let error = |result: Result<f64, ImportError>| result.unwrap_err().to_string();
        assert_eq!(
            error(rows[1].number("b")),
            "line 4, b: the line ends before it"
        );
        assert_eq!(error(rows[2].number("a")), "line 5, a: \"x\" is no number");
        assert!(error(rows[2].seconds("b", 1.0)).contains("too large"));
        let missing = Table::new(text, &["c"]).err().unwrap().to_string();
        assert_eq!(missing, "line 1, c: there is no such column");
        assert!(gpus(1, "g", "0").is_err() && gpus(1, "g", "1.5").is_err());
    }
}
