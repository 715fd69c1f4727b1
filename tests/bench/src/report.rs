//! The table and the document.

use serde::Serialize;

use crate::stats::Stats;

/// A figure with its target.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    /// The document's field.
    #[serde(skip)]
    pub(crate) name: &'static str,
    /// What it says.
    pub(crate) meaning: &'static str,
    /// Highest value wanted; `None`: for scale only.
    pub(crate) target: Option<f64>,
    /// All runs.
    #[serde(flatten)]
    pub(crate) stats: Stats,
}

impl Figure {
    /// A figure.
    pub(crate) const fn new(
        name: &'static str,
        meaning: &'static str,
        target: Option<f64>,
        stats: Stats,
    ) -> Self {
        Self {
            name,
            meaning,
            target,
            stats,
        }
    }

    fn verdict(&self) -> &'static str {
        match self.target {
            None => "",
            Some(target) if self.stats.median <= target => "reached",
            Some(_) => "MISSED",
        }
    }
}

/// One line per figure.
pub(crate) fn table(figures: &[Figure]) -> String {
    let mut text = format!(
        "{:<34} {:>9} {:>9} {:>9} {:>9} {:>5} {:>7}\n",
        "figure", "median", "min", "p95", "max", "runs", "target"
    );
    for figure in figures {
        let Stats {
            runs,
            min,
            median,
            p95,
            max,
        } = figure.stats;
        let target = figure.target.map_or_else(String::new, |t| t.to_string());
        text.push_str(&format!(
            "{:<34} {median:>9.3} {min:>9.3} {p95:>9.3} {max:>9.3} {runs:>5} {target:>7} {}\n",
            figure.name,
            figure.verdict()
        ));
    }
    text
}
