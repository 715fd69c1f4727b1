//! How well the forms of interference model predict pairs they were not fitted on.
//!
//! The measured pairs are public but not ours: they are read from a folder and never copied. On each
//! data set every form is fitted anew, so this judges the form, not the core's coefficients.

mod data;
mod form;

use std::path::Path;

use aegis_daemon::replay::random;
use anyhow::Result;
use serde::Serialize;

use self::data::{Data, Pair, gavel, lucid};
use self::form::Form;

/// Parts of the cross-validation.
const FOLDS: u64 = 5;

/// The errors of a form on a data set: mean of |predicted − measured| / measured speed.
#[derive(Debug, Serialize)]
pub(crate) struct Score {
    data: &'static str,
    form: &'static str,
    /// Directed observations.
    observations: usize,
    /// Pairs of known programs that were not fitted on: five folds over unordered pairs.
    held_out_pairs: f64,
    /// Pairs with a program of a model family that was not fitted on.
    unseen_family: f64,
}

/// Judges all forms on the data in that folder.
///
/// # Errors
/// The folder or a file in it cannot be read.
pub(crate) fn held_out(folder: &Path) -> Result<Vec<Score>> {
    let sets = [
        lucid(folder)?,
        gavel(folder, "v100", "Gavel V100")?,
        gavel(folder, "p100", "Gavel P100")?,
    ];
    let scores = sets.iter().flat_map(|data| {
        let forms = Form::ALL.into_iter();
        let usable = forms.filter(|&form| form != Form::Predictor || data.profiled);
        usable.map(|form| score(data, form))
    });
    Ok(scores.collect())
}

fn score(data: &Data, form: Form) -> Score {
    let fold = |pair: &Pair| {
        let (low, high) = (pair.mine.min(pair.other), pair.mine.max(pair.other));
        let place = random::even(1, low as u64 * 1_000 + high as u64);
        (place * FOLDS as f64).floor()
    };
    let folds = (0..FOLDS)
        .map(|number| errors(data, form, |pair| (fold(pair) - number as f64).abs() < 0.5));
    let held_out: Vec<f64> = folds.flatten().collect();
    let mut families: Vec<&str> = data
        .programs
        .iter()
        .map(|one| one.family.as_str())
        .collect();
    families.sort_unstable();
    families.dedup();
    let is_of = |place: usize, family: &str| {
        let program = data.programs.get(place);
        program.is_some_and(|program| program.family == family)
    };
    let unseen: Vec<f64> = families
        .iter()
        .flat_map(|family| {
            errors(data, form, |pair| {
                is_of(pair.mine, family) || is_of(pair.other, family)
            })
        })
        .collect();
    Score {
        data: data.name,
        form: form.name(),
        observations: data.pairs.len(),
        held_out_pairs: aegis_daemon::replay::stats::mean(&held_out),
        unseen_family: aegis_daemon::replay::stats::mean(&unseen),
    }
}

/// Relative errors on the pairs that `left_out` names, fitted on the others.
fn errors(data: &Data, form: Form, left_out: impl Fn(&Pair) -> bool) -> Vec<f64> {
    let (test, train): (Vec<Pair>, Vec<Pair>) = data.pairs.iter().copied().partition(left_out);
    let predict = form.fit(data, &train);
    let errors = test
        .iter()
        .map(|pair| (predict(pair) - pair.speed).abs() / pair.speed);
    errors.collect()
}

impl Score {
    /// Shows it on standard error.
    pub(crate) fn print(&self) {
        eprintln!(
            "{:<11} {:<16} {:>5} observations  held-out pairs {:>5.1} %  unseen family {:>5.1} %",
            self.data,
            self.form,
            self.observations,
            self.held_out_pairs * 100.0,
            self.unseen_family * 100.0
        );
    }
}
