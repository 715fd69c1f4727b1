//! How much jobs on one GPU slow each other down, predicted, and whether one more is worth it.
//!
//! The prediction is the asymmetric form fitted on public A100 pair measurements of the AEGIS
//! artifact (held-out pairs: 10.0 % mean error; a model family never seen: 10.9 %):
//!
//! ```text
//! slowdown_i = 1 + Σ_j ( 1.802 · sm_j · mem_j  +  0.158 · sm_i · sm_j  +  0.196 · dram_i · dram_j )
//! ```
//!
//! with sm and dram the activities alone and mem the peak as a share of 40 GiB (it stands for the
//! size of batch and kernels), all 0..1. The fitted exponent of mem, 1.062, is left out: a power
//! is not the same bits on every machine. The errors above are of the fit with that exponent; the
//! form without it was not judged again on the held-out pairs. Beyond pairs the terms are summed, and the work that
//! is delivered together, Σ sm_i / slowdown_i, cannot exceed .97 of the GPU.
//!
//! A prediction is a prior: where a slowdown was measured, the measurement counts (`progress`).

/// What one job asks of a GPU alone, 0..1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Load {
    pub(super) sm: f64,
    pub(super) dram: f64,
    pub(super) mem: f64,
    /// Its slowdown beside its present neighbours, where it was measured.
    pub(super) measured: Option<f64>,
}

/// What a newcomer would change on a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    /// Work delivered, as a share of the GPU.
    pub(super) gain: f64,
    /// Slowdown added, summed over residents and newcomer.
    pub(super) harm: f64,
    /// The largest slowdown anybody there would have.
    pub(super) worst: f64,
}

const SM_MEM: f64 = 1.802;
const SM_SM: f64 = 0.158;
const DRAM_DRAM: f64 = 0.196;
/// Bytes that count as a memory share of 1.
const WHOLE: f64 = 40.0 * 1_073_741_824.0;
/// Share of a GPU that jobs can use together.
const DELIVERABLE: f64 = 0.97;

impl Load {
    /// From thousandths and bytes.
    pub(super) fn new(sm_active: u16, dram_active: u16, peak: u64) -> Self {
        Self {
            sm: f64::from(sm_active) / 1000.0,
            dram: f64::from(dram_active) / 1000.0,
            mem: share_of_whole(peak),
            measured: None,
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share of 40 GiB needs no more than 52 bits"
)]
fn share_of_whole(bytes: u64) -> f64 {
    (bytes as f64 / WHOLE).min(1.0)
}

/// The predicted slowdown of each, at least 1.
pub(super) fn predict(loads: &[Load]) -> Vec<f64> {
    let suffers = |(i, me): (usize, &Load)| {
        let others = loads.iter().enumerate().filter(|&(j, _)| j != i);
        let added = others.map(|(_, other)| {
            SM_MEM * other.sm * other.mem
                + SM_SM * me.sm * other.sm
                + DRAM_DRAM * me.dram * other.dram
        });
        1.0 + added.sum::<f64>()
    };
    let mut slow: Vec<f64> = loads.iter().enumerate().map(suffers).collect();
    let delivered = delivered(loads, &slow);
    if delivered > DELIVERABLE && loads.len() > 1 {
        for slow in &mut slow {
            *slow *= delivered / DELIVERABLE;
        }
    }
    slow
}

/// Measured slowdowns where there are such, else predicted ones.
fn present(loads: &[Load]) -> Vec<f64> {
    let predicted = predict(loads);
    let each = loads.iter().zip(predicted);
    each.map(|(load, predicted)| load.measured.unwrap_or(predicted))
        .collect()
}

fn delivered(loads: &[Load], slow: &[f64]) -> f64 {
    loads
        .iter()
        .zip(slow)
        .map(|(load, slow)| load.sm / slow)
        .sum()
}

/// What `newcomer` would change for `residents`.
pub(super) fn change(residents: &[Load], newcomer: Load) -> Change {
    let before = present(residents);
    let predicted_before = predict(residents);
    let mut together = residents.to_vec();
    together.push(newcomer);
    let predicted_after = predict(&together);
    // A measured slowdown grows by the factor the prediction grows by.
    let after: Vec<f64> = predicted_after
        .iter()
        .enumerate()
        .map(
            |(i, &after)| match (before.get(i), predicted_before.get(i)) {
                (Some(before), Some(predicted)) => (before * after / predicted).max(1.0),
                _ => after,
            },
        )
        .collect();
    let sum = |slow: &[f64]| slow.iter().sum::<f64>();
    Change {
        gain: delivered(&together, &after) - delivered(residents, &before),
        harm: sum(&after) - sum(&before) - 1.0,
        worst: after.iter().copied().fold(1.0, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use super::{Load, change, predict};

    fn load(sm: u16, dram: u16, gib: u64) -> Load {
        Load::new(sm, dram, gib << 30)
    }

    #[test]
    fn alone_nothing_is_slowed_and_a_big_partner_starves_a_small_one() {
        assert_eq!(predict(&[load(900, 400, 20)]), [1.0]);
        let slow = predict(&[load(180, 60, 1), load(800, 400, 21)]);
        assert!(slow[0] > 1.7 && slow[1] < 1.1, "{slow:?}");
    }

    #[test]
    fn together_no_more_than_the_gpu_is_delivered() {
        let loads = [load(800, 100, 1), load(800, 100, 1), load(800, 100, 1)];
        let slow = predict(&loads);
        let delivered: f64 = loads.iter().zip(&slow).map(|(l, s)| l.sm / s).sum();
        assert!(delivered < 0.971, "{delivered}");
    }

    #[test]
    fn small_jobs_are_worth_it_and_measured_harm_counts() {
        let small = load(170, 50, 1);
        let both = change(&[small], small);
        assert!(both.gain > 0.15 && both.harm < 0.1, "{both:?}");
        let suffering = Load {
            measured: Some(2.0),
            ..small
        };
        let worse = change(&[suffering], small);
        assert!(worse.worst > 2.0 && worse.harm > both.harm, "{worse:?}");
    }
}
