//! The pressure gate (contract C8): is an occupied GPU too busy for one more job?

use std::collections::VecDeque;

use aegis_common::id::Moment;
use aegis_common::policy::{Policy, Tier};

use super::gpu::Pressure;

/// Valid samples a verdict needs.
const MIN_SAMPLES: usize = 3;

/// The window's figures, or their limits, thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) sm_active: u16,
    pub(super) sm_occupancy: Option<u16>,
    pub(super) dram_active: Option<u16>,
}

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// One more job may come.
    Open,
    /// No fresh valid sample; the last valid one is that old.
    Stale(Option<u64>),
    /// Too few samples since the residents settled.
    Filling,
    /// Busy: SM activity reached its limit, and so did occupancy or DRAM activity where they have one.
    Busy { is: Figures, limits: Figures },
}

/// Judges the samples taken after `since`.
pub(super) fn judge(
    samples: &VecDeque<Pressure>,
    last_valid: Option<Moment>,
    since: Moment,
    tier: Tier,
    at: Moment,
    policy: &Policy,
) -> Verdict {
    let age = last_valid.map(|valid| at.millis_since(valid));
    let newest_valid = samples.back().is_some_and(|last| last.sm_active.is_some());
    if !newest_valid || age.is_none_or(|age| age > policy.stale_after_ms) {
        return Verdict::Stale(age);
    }
    let Some(figures) = figures(samples, since, policy) else {
        return Verdict::Filling;
    };
    let raise = policy.mode.gate_raise();
    let raised = |limit: u16| limit.saturating_add_signed(raise).clamp(1, 1000);
    let limits = match tier {
        Tier::Gpm | Tier::Dcgm => Figures {
            sm_active: raised(policy.gate_sm_active),
            sm_occupancy: Some(policy.gate_sm_occupancy),
            dram_active: Some(raised(policy.gate_dram_active)),
        },
        Tier::Utilisation | Tier::None => Figures {
            sm_active: policy.gate_utilisation,
            sm_occupancy: None,
            dram_active: None,
        },
    };
    let busy = figures.sm_active >= limits.sm_active
        && (reaches(figures.sm_occupancy, limits.sm_occupancy)
            || reaches(figures.dram_active, limits.dram_active));
    if busy {
        Verdict::Busy {
            is: figures,
            limits,
        }
    } else {
        Verdict::Open
    }
}

/// A figure that is missing counts as high, and so does one without a limit.
fn reaches(figure: Option<u16>, limit: Option<u16>) -> bool {
    let both = figure.zip(limit);
    both.is_none_or(|(figure, limit)| figure >= limit)
}

/// The figures of the valid samples taken after `since`; `None` while there are too few.
pub(super) fn figures(
    samples: &VecDeque<Pressure>,
    since: Moment,
    policy: &Policy,
) -> Option<Figures> {
    let valid: Vec<&Pressure> = samples
        .iter()
        .filter(|sample| sample.at > since && sample.sm_active.is_some())
        .collect();
    let enough = MIN_SAMPLES.min(usize::from(policy.gate_window.max(1)));
    if valid.len() < enough {
        return None;
    }
    let of = |metric: fn(&Pressure) -> Option<u16>| {
        let values: Option<Vec<u16>> = valid.iter().map(|sample| metric(sample)).collect();
        values.and_then(|values| risk(&values, policy.gate_window))
    };
    Some(Figures {
        sm_active: of(|sample| sample.sm_active)?,
        sm_occupancy: of(|sample| sample.sm_occupancy),
        dram_active: of(|sample| sample.dram_active),
    })
}

/// A quarter each of mean, median, 95th percentile and exponentially weighted mean with
/// α = 2 / (window + 1): the weights of the AEGIS artifact. `None` without values.
fn risk(values: &[u16], window: u16) -> Option<u16> {
    // Fixed point with ten fractional bits: the same bits on every machine.
    const ONE: i64 = 1 << 10;
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let count = sorted.len();
    let at = |index: usize| sorted.get(index).map(|&value| i64::from(value) * ONE);
    let length = i64::try_from(count).ok().filter(|&length| length > 0)?;
    let mean = values.iter().map(|&value| i64::from(value)).sum::<i64>() * ONE / length;
    let median = (at((count - 1) / 2)? + at(count / 2)?) / 2;
    let p95 = at((count * 95).div_ceil(100).saturating_sub(1))?;
    let mut ewma = i64::from(*values.first()?) * ONE;
    for &value in values {
        ewma += (i64::from(value) * ONE - ewma) * 2 / (i64::from(window) + 1);
    }
    let quarter_sum = (mean + median + p95 + ewma) / 4;
    u16::try_from((quarter_sum + ONE / 2) / ONE).ok()
}

#[cfg(test)]
mod tests {
    use super::risk;

    #[test]
    fn risk_is_the_value_of_a_constant_window_and_weighs_peaks() {
        assert_eq!(risk(&[640; 10], 10), Some(640));
        assert_eq!(risk(&[], 10), None);
        // mean 200, median 100, p95 1000, ewma of a late peak 100 + 900·2/11.
        let late = [100, 100, 100, 100, 100, 100, 100, 100, 1000];
        assert_eq!(risk(&late, 10), Some((200 + 100 + 1000 + 263) / 4 + 1));
    }
}
