//! The table and the document.

use std::borrow::Cow;

use anyhow::Result;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::host::Host;
use crate::stats::Stats;

/// A figure with its target.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    /// The document's field.
    #[serde(skip)]
    pub(crate) name: &'static str,
    /// What it says.
    pub(crate) meaning: Cow<'static, str>,
    /// Highest value wanted; `None`: for scale only.
    pub(crate) target: Option<f64>,
    /// Highest value accepted where the machine is busy with other work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<f64>,
    /// The same of another library, and how many times as much it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) against: Option<Against>,
    /// All runs.
    #[serde(flatten)]
    pub(crate) stats: Stats,
}

/// What another library came to in the same run.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Against {
    /// Its median over the figure's; `None` if the figure is not above zero.
    pub(crate) ratio: Option<f64>,
    /// All runs.
    #[serde(flatten)]
    pub(crate) stats: Stats,
}

impl Figure {
    /// A figure.
    pub(crate) fn new(
        name: &'static str,
        meaning: impl Into<Cow<'static, str>>,
        target: Option<f64>,
        stats: Stats,
    ) -> Self {
        Self {
            name,
            meaning: meaning.into(),
            target,
            limit: None,
            against: None,
            stats,
        }
    }

    /// The worst of several figures under a name of its own. `None` without any.
    pub(crate) fn worst(
        name: &'static str,
        meaning: &'static str,
        target: f64,
        of: &[Self],
    ) -> Option<Self> {
        let worst = |stats: &mut dyn Iterator<Item = Stats>| {
            stats.max_by(|a, b| a.median.total_cmp(&b.median))
        };
        let own = worst(&mut of.iter().map(|figure| figure.stats))?;
        let other = worst(&mut of.iter().filter_map(|f| f.against).map(|a| a.stats));
        Some(Self::new(name, meaning, Some(target), own).beside(other))
    }

    /// With a limit for busy machines.
    pub(crate) fn limited(mut self, limit: f64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Beside another library's.
    pub(crate) fn beside(mut self, other: Option<Stats>) -> Self {
        self.against = other.map(|stats| Against {
            ratio: (self.stats.median > 0.0).then(|| round(stats.median / self.stats.median)),
            stats,
        });
        self
    }

    fn verdict(&self) -> &'static str {
        match self.target {
            None => "",
            Some(target) if self.stats.median <= target => "reached",
            Some(_) if self.limit.is_some_and(|limit| self.stats.median <= limit) => "within limit",
            Some(_) => "MISSED",
        }
    }
}

fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The table on standard error, and the document on standard output if it is wanted.
///
/// # Errors
/// A figure is no number.
pub(crate) fn print(measured_on: &str, figures: &[Figure], host: &Host, json: bool) -> Result<()> {
    eprintln!("\n{measured_on}; {host}");
    eprint!("{}", table(figures));
    if json {
        let document = document(measured_on, figures, host)?;
        println!("{}", serde_json::to_string_pretty(&document)?);
    }
    Ok(())
}

/// Medians under their names, everything else below.
fn document(measured_on: &str, figures: &[Figure], host: &Host) -> Result<Value> {
    let mut fields = Map::new();
    fields.insert("measured_on".to_owned(), json!(measured_on));
    for figure in figures {
        fields.insert(figure.name.to_owned(), json!(round(figure.stats.median)));
    }
    fields.insert("host".to_owned(), serde_json::to_value(host)?);
    let details = figures
        .iter()
        .map(|figure| Ok((figure.name.to_owned(), serde_json::to_value(figure)?)));
    let details = details.collect::<Result<Map<_, _>>>()?;
    fields.insert("details".to_owned(), Value::Object(details));
    Ok(Value::Object(fields))
}

/// One line per figure.
fn table(figures: &[Figure]) -> String {
    let compared = figures.iter().any(|figure| figure.against.is_some());
    let mut text = format!(
        "{:<34} {:>9} {:>9} {:>9} {:>9} {:>5} {:>7} {:>7}{}\n",
        "figure",
        "median",
        "min",
        "p95",
        "max",
        "runs",
        "target",
        "limit",
        if compared { "     other  ratio" } else { "" }
    );
    for figure in figures {
        let Stats {
            runs,
            min,
            median,
            p95,
            max,
        } = figure.stats;
        let optional = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
        let target = optional(figure.target);
        let limit = optional(figure.limit);
        text.push_str(&format!(
            "{:<34} {median:>9.3} {min:>9.3} {p95:>9.3} {max:>9.3} {runs:>5} {target:>7} {limit:>7}",
            figure.name
        ));
        if let Some(against) = figure.against {
            let ratio = against
                .ratio
                .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.1}"));
            text.push_str(&format!(" {:>9.3} {ratio:>6}", against.stats.median));
        }
        text.push_str(&format!(" {}\n", figure.verdict()));
    }
    text
}
