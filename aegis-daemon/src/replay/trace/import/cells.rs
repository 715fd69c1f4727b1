//! Measured slowdowns of pairs: Gavel's `oracle_throughputs.json`, or a table
//! `program,beside,slowdown`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ImportError;
use super::csv::{Table, wrong};

/// How much slower a program is beside another.
#[derive(Clone, Debug, PartialEq)]
pub struct PairSlowdown {
    /// The program.
    pub program: String,
    /// The other one.
    pub beside: String,
    /// Its time by the time alone.
    pub slowdown: f64,
}

const COLUMNS: &[&str] = &["program", "beside", "slowdown"];
/// The GPU whose figures are taken where there are several: the fastest in Gavel's file.
const GPU: &str = "v100";
/// The name of a speed alone in Gavel's file.
const ALONE: &str = "null";

type Throughputs = BTreeMap<String, BTreeMap<String, BTreeMap<String, Value>>>;

/// The pairs of a file. Pairs that did not fit into memory together are left out.
///
/// # Errors
/// What is wrong with it and where.
pub fn pair_slowdowns(text: &str) -> Result<Vec<PairSlowdown>, ImportError> {
    let pairs = if text.trim_start().starts_with('{') {
        gavel(text)?
    } else {
        table(text)?
    };
    if pairs.is_empty() {
        return Err(ImportError::NotATrace("there is no measured pair in it"));
    }
    Ok(pairs)
}

fn table(text: &str) -> Result<Vec<PairSlowdown>, ImportError> {
    let table = Table::new(text, COLUMNS)?;
    let pairs = table.rows().map(|row| {
        Ok(PairSlowdown {
            program: row.text("program")?.to_owned(),
            beside: row.text("beside")?.to_owned(),
            slowdown: row.number("slowdown")?,
        })
    });
    pairs.collect()
}

fn gavel(text: &str) -> Result<Vec<PairSlowdown>, ImportError> {
    let file: Throughputs = serde_json::from_str(text)
        .map_err(|error| wrong(error.line(), "throughputs", &error.to_string()))?;
    let programs = file.get(GPU).or_else(|| file.values().next());
    let mut pairs = Vec::new();
    for (program, row) in programs.into_iter().flatten() {
        let Some(alone) = row.get(ALONE).and_then(speed).filter(|alone| *alone > 0.0) else {
            let problem = format!("{program:?} has no speed alone (\"{ALONE}\")");
            return Err(wrong(1, "throughputs", &problem));
        };
        for (beside, cell) in row.iter().filter(|(name, _)| *name != ALONE) {
            let mine = cell.as_array().and_then(|both| both.first());
            let Some(mine) = mine.and_then(speed) else {
                let problem = format!("{program:?} beside {beside:?} is no pair of speeds");
                return Err(wrong(1, "throughputs", &problem));
            };
            if mine > 0.0 {
                pairs.push(PairSlowdown {
                    program: program.clone(),
                    beside: beside.clone(),
                    slowdown: alone / mine,
                });
            }
        }
    }
    Ok(pairs)
}

fn speed(value: &Value) -> Option<f64> {
    value
        .as_f64()
        .filter(|speed| speed.is_finite() && *speed >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::csv::tests::tables;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_forms_are_read() {
        let text = r#"{"k80":{}, "v100":{"A":{"null":10.0,"A":[5.0,5.0],"B":[0,0]},
                       "B":{"null":4,"A":[4.0,2.0]}}}"#;
        let pairs = pair_slowdowns(text).unwrap();
        let shown: Vec<_> = pairs
            .iter()
            .map(|pair| (pair.program.as_str(), pair.beside.as_str(), pair.slowdown))
            .collect();
        assert_eq!(shown, [("A", "A", 2.0), ("B", "A", 1.0)]);
        let pairs = pair_slowdowns("program,beside,slowdown\nA,B,1.5\n").unwrap();
        assert_eq!(pairs[0].slowdown, 1.5);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            (r#"{"v100":{"A":{"B":[1,1]}}}"#, "no speed alone"),
            (r#"{"v100":{"A":{"null":1,"B":3}}}"#, "no pair of speeds"),
            (r#"{"v100":3}"#, "line 1, throughputs"),
            (r#"{"v100":{}}"#, "no measured pair"),
            ("a,b\n", "line 1, program"),
            ("program,beside,slowdown\nA,B,fast\n", "line 2, slowdown"),
        ] {
            let error = pair_slowdowns(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_pairs_or_an_error(
            text in prop_oneof![
                ".*",
                tables("program,beside,slowdown"),
                "\\{\"v100\":\\{\"A\":\\{\"null\":[0-9e.]{1,5},\"B\":\\[[0-9,.]{0,6}\\]\\}\\}\\}",
            ]
        ) {
            if let Ok(pairs) = pair_slowdowns(&text) {
                prop_assert!(pairs.iter().all(|pair| !pair.slowdown.is_nan()));
            }
        }
    }
}
