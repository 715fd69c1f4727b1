//! The forms that slowdowns may have.

use super::data::{Data, Pair, Program};

/// Keeps figures of programs with few pairs near the mean.
const RIDGE: f64 = 1.0;
/// Rounds of fitting one set of figures while the other stands still.
const ROUNDS: usize = 50;

/// What a prediction may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Nothing: neighbours do not disturb.
    None,
    /// ln slowdown = mean + sensitivity of one + pressure of the other: the replay's truth.
    Additive,
    /// The core's: 1 + a·busy_j·memory_j + b·busy_i·busy_j + c·dram_i·dram_j.
    Predictor,
}

/// A fitted form: the speed of a pair's first program.
pub(super) type Predict<'a> = Box<dyn Fn(&Pair) -> f64 + 'a>;

impl Form {
    pub(super) const ALL: [Self; 3] = [Self::None, Self::Additive, Self::Predictor];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "no interference",
            Self::Additive => "additive",
            Self::Predictor => "predictor's form",
        }
    }

    /// Fits it on these pairs.
    pub(super) fn fit<'a>(self, data: &'a Data, pairs: &[Pair]) -> Predict<'a> {
        match self {
            Self::None => Box::new(|_| 1.0),
            Self::Additive => additive(data.programs.len(), pairs),
            Self::Predictor => predictor(&data.programs, pairs),
        }
    }
}

fn additive<'a>(programs: usize, pairs: &[Pair]) -> Predict<'a> {
    let slow = |pair: &Pair| -pair.speed.ln();
    let mean = pairs.iter().map(slow).sum::<f64>() / pairs.len().max(1) as f64;
    let (mut sensitivity, mut pressure) = (vec![0.0; programs], vec![0.0; programs]);
    for _ in 0..ROUNDS {
        sensitivity = rests(programs, pairs, |pair| {
            (pair.mine, slow(pair) - mean - at(&pressure, pair.other))
        });
        pressure = rests(programs, pairs, |pair| {
            (pair.other, slow(pair) - mean - at(&sensitivity, pair.mine))
        });
    }
    Box::new(move |pair| {
        let log = mean + at(&sensitivity, pair.mine) + at(&pressure, pair.other);
        (-log.max(0.0)).exp()
    })
}

/// For each program the mean of what is left for it to explain, drawn to 0.
fn rests(programs: usize, pairs: &[Pair], rest: impl Fn(&Pair) -> (usize, f64)) -> Vec<f64> {
    let mut sums = vec![(0.0, RIDGE); programs];
    for pair in pairs {
        let (place, rest) = rest(pair);
        if let Some((sum, count)) = sums.get_mut(place) {
            *sum += rest;
            *count += 1.0;
        }
    }
    sums.into_iter().map(|(sum, count)| sum / count).collect()
}

fn predictor<'a>(programs: &'a [Program], pairs: &[Pair]) -> Predict<'a> {
    let mut weights = [0.0_f64; 3];
    // Coordinate descent on the squared error, no weight below 0: a neighbour never helps.
    for _ in 0..ROUNDS {
        for one in 0..weights.len() {
            let (mut up, mut down) = (0.0, 1e-9);
            for pair in pairs {
                let terms = terms(programs, pair);
                let others = terms.iter().zip(&weights).enumerate();
                let others = others.filter(|&(place, _)| place != one);
                let known: f64 = others.map(|(_, (term, weight))| term * weight).sum();
                let term = at(&terms, one);
                up += term * (1.0 / pair.speed - 1.0 - known);
                down += term * term;
            }
            if let Some(weight) = weights.get_mut(one) {
                *weight = (up / down).max(0.0);
            }
        }
    }
    Box::new(move |pair| {
        let terms = terms(programs, pair);
        let added: f64 = terms.iter().zip(&weights).map(|(a, b)| a * b).sum();
        1.0 / (1.0 + added)
    })
}

fn terms(programs: &[Program], pair: &Pair) -> [f64; 3] {
    let (Some(mine), Some(other)) = (programs.get(pair.mine), programs.get(pair.other)) else {
        return [0.0; 3];
    };
    [
        other.busy * other.memory,
        mine.busy * other.busy,
        mine.dram * other.dram,
    ]
}

fn at(values: &[f64], place: usize) -> f64 {
    values.get(place).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_finds_figures_of_its_own_kind() {
        let programs: Vec<Program> = (1..=6)
            .map(|size| Program {
                family: size.to_string(),
                busy: f64::from(size) / 8.0,
                dram: f64::from(size % 3) / 4.0,
                memory: 0.9 - f64::from(size) / 10.0,
            })
            .collect();
        let all = || (0..6).flat_map(|mine| (0..6).map(move |other| (mine, other)));
        let measured = |speed: &dyn Fn(usize, usize) -> f64| -> Vec<Pair> {
            all()
                .map(|(mine, other)| Pair {
                    mine,
                    other,
                    speed: speed(mine, other),
                })
                .collect()
        };
        let additive =
            measured(&|mine, other| (-(0.2 + 0.02 * mine as f64 + 0.05 * other as f64)).exp());
        let physical = measured(&|mine, other| {
            let pair = Pair {
                mine,
                other,
                speed: 1.0,
            };
            let [a, b, c] = terms(&programs, &pair);
            1.0 / (1.0 + 1.5 * a + 0.3 * b + 0.2 * c)
        });
        let data = Data {
            name: "made up",
            programs: programs.clone(),
            pairs: Vec::new(),
            profiled: true,
        };
        for (form, pairs, within) in [
            (Form::Additive, additive, 0.03),
            (Form::Predictor, physical, 0.01),
        ] {
            let predict = form.fit(&data, &pairs);
            for pair in &pairs {
                let off = predict(pair) - pair.speed;
                assert!(off.abs() < within, "{form:?} {pair:?}: {off}");
            }
        }
    }
}
