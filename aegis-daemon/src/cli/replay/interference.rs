//! `--interference`: what sharing costs in the simulated machine.

use crate::replay::Interference;

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
}

const HOW: &str = "the models are additive and asymmetric, with a factor if you like: additive:2";
/// Beyond this, sharing is so slow that nothing can be learned from it.
const MOST: f64 = 100.0;

impl Choice {
    /// From `MODEL` or `MODEL:FACTOR`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (model, factor) = match text.rsplit_once(':') {
            Some((model, factor)) => (model, factor.parse().map_err(|_| HOW.to_owned())?),
            None => (text, 1.0),
        };
        if !(0.0..=MOST).contains(&factor) {
            return Err(format!("the factor must be between 0 and {MOST}"));
        }
        let model = match model {
            "additive" => Model::Additive,
            "asymmetric" => Model::Asymmetric,
            _ => return Err(HOW.to_owned()),
        };
        Ok(Self { model, factor })
    }

    /// The machine's truth.
    pub(super) fn truth(&self) -> Interference {
        match self.model {
            Model::Additive => Interference::Additive,
            Model::Asymmetric => Interference::Asymmetric,
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        match self.model {
            Model::Additive => "additive",
            Model::Asymmetric => "asymmetric",
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
        for wrong in ["additive:x", "additive:-1", "additive:NaN", "magic", ""] {
            assert!(Choice::parse(wrong).is_err(), "{wrong}");
        }
    }
}
