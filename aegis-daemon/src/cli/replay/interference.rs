//! `--interference`: what sharing costs in the simulated machine.

use std::path::PathBuf;

use aegis_common::wire::{ErrorCode, Failure};

use super::super::error::hinted;
use super::source::read;
use crate::replay::trace::import::{PairSlowdown, pair_slowdowns};
use crate::replay::{Cells, Interference, Trace};

/// A model of the truth, and how strong it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    /// Which formula.
    pub model: Model,
    /// Scales what neighbours add to each other's time.
    pub factor: f64,
}

/// Which formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Model {
    /// Each program's sensitivity and pressure, fitted on measured pairs.
    Additive,
    /// A formula of SM activity, memory and memory activity.
    Asymmetric,
    /// Measured pairs in a file; additive where there is none.
    Cells(PathBuf),
}

const HOW: &str =
    "the models are additive, asymmetric and cells=FILE, with a factor if you like: additive:2";
/// How the name of a file of pairs begins.
const CELLS: &str = "cells=";
/// Beyond this, sharing is so slow that nothing can be learned from it.
const MOST: f64 = 100.0;

impl Choice {
    /// From `MODEL` or `MODEL:FACTOR`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once(':');
        let (model, factor) = match parts.map(|(model, factor)| (model, factor.parse::<f64>())) {
            Some((model, Ok(factor))) => (model, factor),
            // The colon may belong to the file's name.
            Some(_) if text.starts_with(CELLS) => (text, 1.0),
            Some(_) => return Err(HOW.to_owned()),
            None => (text, 1.0),
        };
        if !(0.0..=MOST).contains(&factor) {
            return Err(format!("the factor must be between 0 and {MOST}"));
        }
        let model = match model {
            "additive" => Model::Additive,
            "asymmetric" => Model::Asymmetric,
            _ if model.len() > CELLS.len() && model.starts_with(CELLS) => {
                Model::Cells(PathBuf::from(model.trim_start_matches(CELLS)))
            }
            _ => return Err(HOW.to_owned()),
        };
        Ok(Self { model, factor })
    }

    /// The pairs of its file; none where it has no file.
    pub(super) fn pairs(&self) -> Result<Vec<PairSlowdown>, Failure> {
        let Model::Cells(path) = &self.model else {
            return Ok(Vec::new());
        };
        pair_slowdowns(&read(path)?).map_err(|error| {
            hinted(
                ErrorCode::BadRequest,
                format!("{}: {error}", path.display()),
                "give Gavel's oracle_throughputs.json or a table with the header \
                 program,beside,slowdown",
            )
        })
    }

    /// The truth about the programs of a trace.
    pub(super) fn truth(
        &self,
        trace: &Trace,
        pairs: &[PairSlowdown],
    ) -> Result<Interference, Failure> {
        let path = match &self.model {
            Model::Additive => return Ok(Interference::Additive),
            Model::Asymmetric => return Ok(Interference::Asymmetric),
            Model::Cells(path) => path,
        };
        let measured = pairs
            .iter()
            .map(|pair| (pair.program.as_str(), pair.beside.as_str(), pair.slowdown));
        let cells = Cells::named(trace, measured);
        if cells.is_empty() {
            return Err(hinted(
                ErrorCode::BadRequest,
                format!("{}: no program of it is in this trace", path.display()),
                "pairs go with traces that name the same programs; Gavel's with Gavel's",
            ));
        }
        Ok(Interference::Cells(cells))
    }

    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        match self.model {
            Model::Additive => "additive",
            Model::Asymmetric => "asymmetric",
            Model::Cells(_) => "cells",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_may_follow_the_model() {
        let parsed = Choice::parse("asymmetric:0.5").unwrap();
        assert_eq!((parsed.name(), parsed.factor), ("asymmetric", 0.5));
        assert_eq!(Choice::parse("additive").unwrap().factor, 1.0);
        let cells = |path: &str| Model::Cells(PathBuf::from(path));
        let parsed = Choice::parse("cells=a:b.json").unwrap();
        assert_eq!((parsed.model, parsed.factor), (cells("a:b.json"), 1.0));
        let parsed = Choice::parse("cells=a.json:2").unwrap();
        assert_eq!((parsed.model, parsed.factor), (cells("a.json"), 2.0));
        for wrong in [
            "additive:x",
            "additive:-1",
            "additive:NaN",
            "cells=",
            "magic",
            "",
        ] {
            assert!(Choice::parse(wrong).is_err(), "{wrong}");
        }
    }
}
