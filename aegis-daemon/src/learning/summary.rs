//! From what runs taught to what is known.

use std::collections::BTreeMap;

use aegis_common::learned::{Learned, Observed, Profile, Quantiles, SoloRate};

/// Runs kept of one command, the newest.
pub const RUNS_KEPT: usize = 32;
/// Launch sequences whose solo rate is told.
const SOLO_RATES: usize = 8;
/// A run that did not complete tells its peak only if it ran this long, milliseconds: a crash at
/// start says nothing of what training needs. As long as an observation lasts at most by default.
const TELLING_MS: u64 = 120_000;
/// A single highest figure is taken for a freak once this many newer runs stayed below it...
const FREAK_AFTER: usize = 4;
/// ...and the second highest is less than this share of it, thousandths.
const FREAK_PERMILLE: u128 = 750;

/// What the runs of one command, oldest first, say about its next run.
///
/// Peak and overhead are the highest of all runs kept, save one freak. Profile and solo rates are
/// medians, quantiles are of completed runs by nearest rank.
#[must_use]
pub fn summary(runs: &[Observed]) -> Learned {
    let runs = runs.get(runs.len().saturating_sub(RUNS_KEPT)..);
    let runs = runs.unwrap_or_default();
    let telling = |run: &&Observed| run.completed || run.out_of_memory || run.ran_ms >= TELLING_MS;
    let telling: Vec<&Observed> = runs.iter().filter(telling).collect();
    let figures = |figure: fn(&Observed) -> Option<u64>| -> Vec<u64> {
        telling.iter().filter_map(|run| figure(run)).collect()
    };
    Learned {
        runs: u32::try_from(telling.len()).unwrap_or(u32::MAX),
        exact: true,
        peak: highest(&figures(|run| run.peak)),
        overhead: highest(&figures(|run| run.overhead)),
        profile: profile(&telling),
        solo_rates: solo_rates(&telling),
        work: work(runs),
        work_measured: work_measured(runs),
    }
}

/// What is known of a command by similar ones, nearest first: the highest peak and overhead, the
/// profile of the nearest that has one, the widest span of work. Solo rates are not carried over:
/// a launch sequence may be the same at another size, its rate is not.
#[must_use]
pub fn similar(known: &[Learned]) -> Learned {
    let work: Vec<Quantiles> = known.iter().filter_map(|one| one.work).collect();
    let median = {
        let mut halves: Vec<u64> = work.iter().map(|one| one.p50).collect();
        median(&mut halves)
    };
    Learned {
        runs: known
            .iter()
            .fold(0, |sum, one| sum.saturating_add(one.runs)),
        exact: false,
        peak: known.iter().filter_map(|one| one.peak).max(),
        overhead: known.iter().filter_map(|one| one.overhead).max(),
        profile: known.iter().find_map(|one| one.profile),
        solo_rates: Vec::new(),
        work: median.and_then(|p50| {
            Some(Quantiles {
                p10: work.iter().map(|one| one.p10).min()?,
                p50,
                p90: work.iter().map(|one| one.p90).max()?,
            })
        }),
        work_measured: median.is_some()
            && known
                .iter()
                .all(|one| one.work.is_none() || one.work_measured),
    }
}

/// The highest figure, oldest first. One that stands alone, has many newer ones below it and far
/// above the second is left out: it was another program version or a leak. Too high a figure makes
/// a job wait, too low a one makes it fail, so that nothing younger is left out.
fn highest(figures: &[u64]) -> Option<u64> {
    let highest = figures.iter().copied().max()?;
    let last = figures.iter().rposition(|figure| *figure == highest)?;
    let newer = figures.len() - last - 1;
    let second = figures
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != last)
        .map(|(_, figure)| *figure)
        .max();
    match second {
        Some(second)
            if newer >= FREAK_AFTER
                && u128::from(second) * 1000 < u128::from(highest) * FREAK_PERMILLE =>
        {
            Some(second)
        }
        _ => Some(highest),
    }
}

fn profile(runs: &[&Observed]) -> Option<Profile> {
    let profiles: Vec<Profile> = runs.iter().filter_map(|run| run.profile).collect();
    let middle = |figure: fn(&Profile) -> Option<u16>| -> Option<u16> {
        let mut figures: Vec<u16> = profiles.iter().filter_map(figure).collect();
        median(&mut figures)
    };
    Some(Profile {
        sm_active: middle(|profile| Some(profile.sm_active))?,
        sm_occupancy: middle(|profile| profile.sm_occupancy),
        dram_active: middle(|profile| profile.dram_active),
    })
}

/// The rates of the launch sequences seen last, each the median over the runs that had it.
fn solo_rates(runs: &[&Observed]) -> Vec<SoloRate> {
    let mut order: Vec<u64> = Vec::new();
    let mut rates: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for rate in runs.iter().rev().flat_map(|run| &run.solo_rates) {
        if !order.contains(&rate.fingerprint) {
            order.push(rate.fingerprint);
        }
        rates
            .entry(rate.fingerprint)
            .or_default()
            .push(rate.rate_uhz);
    }
    order.truncate(SOLO_RATES);
    let rate = |fingerprint| {
        let rate_uhz = median(rates.get_mut(&fingerprint)?)?;
        Some(SoloRate {
            fingerprint,
            rate_uhz,
        })
    };
    order.into_iter().filter_map(rate).collect()
}

fn work(runs: &[Observed]) -> Option<Quantiles> {
    let completed = runs.iter().filter(|run| run.completed);
    let mut work: Vec<u64> = completed
        .map(|run| run.work_ms.unwrap_or(run.ran_ms))
        .collect();
    work.sort_unstable();
    // The smallest value that so many percent do not exceed.
    let rank = |percent: usize| {
        let rank = (percent * work.len()).div_ceil(100).max(1);
        work.get(rank - 1).copied()
    };
    Some(Quantiles {
        p10: rank(10)?,
        p50: rank(50)?,
        p90: rank(90)?,
    })
}

/// There are completed runs, and the slowdown of each is known.
fn work_measured(runs: &[Observed]) -> bool {
    let mut completed = runs.iter().filter(|run| run.completed).peekable();
    completed.peek().is_some() && completed.all(|run| run.work_ms.is_some())
}

/// The lower of the two middle ones where there are two.
fn median<T: Ord + Copy>(figures: &mut [T]) -> Option<T> {
    figures.sort_unstable();
    figures.get(figures.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aegis_common::id::Moment;
    use proptest::prelude::*;

    fn run(peak: u64) -> Observed {
        Observed {
            gpu_model: "H200".to_owned(),
            completed: true,
            out_of_memory: false,
            peak: Some(peak),
            overhead: Some(peak / 10),
            profile: None,
            solo_rates: Vec::new(),
            ran_ms: peak,
            work_ms: None,
            ended: Moment(0),
        }
    }

    fn peak(peaks: &[u64]) -> Option<u64> {
        summary(&peaks.iter().copied().map(run).collect::<Vec<_>>()).peak
    }

    #[test]
    fn nothing_is_known_of_nothing() {
        let nothing = Learned {
            exact: true,
            ..Learned::default()
        };
        assert_eq!(summary(&[]), nothing);
        assert_eq!(similar(&[]), Learned::default());
    }

    #[test]
    fn the_peak_is_the_highest_but_for_one_old_freak() {
        assert_eq!(peak(&[10, 12, 11]), Some(12));
        assert_eq!(peak(&[10, 100, 11, 10, 10]), Some(100), "not old enough");
        assert_eq!(peak(&[10, 100, 11, 10, 10, 10]), Some(11));
        assert_eq!(peak(&[10, 14, 11, 10, 10, 10]), Some(14), "not far enough");
        assert_eq!(peak(&[100, 10, 100, 10, 10, 10, 10]), Some(100), "twice");
    }

    #[test]
    fn a_crash_at_start_says_nothing() {
        let failed = |ran_ms| Observed {
            completed: false,
            ran_ms,
            ..run(5)
        };
        let learned = summary(&[failed(1_000)]);
        assert_eq!((learned.runs, learned.peak, learned.work), (0, None, None));
        let learned = summary(&[failed(200_000)]);
        assert_eq!(
            (learned.runs, learned.peak, learned.work),
            (1, Some(5), None)
        );
        let oom = Observed {
            out_of_memory: true,
            ..failed(1_000)
        };
        assert_eq!(summary(&[oom]).peak, Some(5));
    }

    #[test]
    fn profile_rates_and_work_are_of_the_middle() {
        let busy = |sm_active, rate_uhz, work_ms| Observed {
            profile: Some(Profile {
                sm_active,
                sm_occupancy: None,
                dram_active: Some(sm_active / 2),
            }),
            solo_rates: vec![SoloRate {
                fingerprint: rate_uhz % 2,
                rate_uhz,
            }],
            work_ms: Some(work_ms),
            ..run(1)
        };
        let learned = summary(&[busy(100, 10, 7), busy(900, 30, 9), busy(300, 20, 8)]);
        let profile = learned.profile.unwrap();
        assert_eq!((profile.sm_active, profile.dram_active), (300, Some(150)));
        assert_eq!(profile.sm_occupancy, None);
        assert_eq!(learned.solo_rates[0].rate_uhz, 20);
        let work = learned.work.unwrap();
        assert_eq!((work.p10, work.p50, work.p90), (7, 8, 9));
        assert!(learned.work_measured && similar(std::slice::from_ref(&learned)).work_measured);
        let known = similar(&[learned.clone(), summary(&[run(50)])]);
        assert_eq!((known.exact, known.runs, known.peak), (false, 4, Some(50)));
        assert_eq!(known.profile, learned.profile);
        assert!(known.solo_rates.is_empty());
        let work = known.work.unwrap();
        assert_eq!((work.p10, work.p50, work.p90), (7, 8, 50));
        assert!(!known.work_measured, "one is running time as it was");
    }

    proptest! {
        #[test]
        fn figures_stay_within_what_was_seen(
            figures in proptest::collection::vec((1_u64..1000, any::<bool>(), any::<bool>()), 1..60)
        ) {
            let runs: Vec<Observed> = figures.iter().map(|(peak, completed, freak)| Observed {
                completed: *completed,
                solo_rates: (0..12).map(|fingerprint| SoloRate { fingerprint, rate_uhz: *peak }).collect(),
                ..run(if *freak { peak * 100 } else { *peak })
            }).collect();
            let learned = summary(&runs);
            prop_assert!(learned.solo_rates.len() <= 8);
            prop_assert!(learned.runs as usize <= RUNS_KEPT);
            if let Some(peak) = learned.peak {
                let kept = &runs[runs.len().saturating_sub(RUNS_KEPT)..];
                let mut peaks: Vec<u64> = kept.iter().filter_map(|run| run.peak).collect();
                prop_assert!(peaks.contains(&peak));
                // Never below the newest four.
                let newest = kept.iter().rev().filter(|run| run.completed).take(4);
                prop_assert!(newest.filter_map(|run| run.peak).all(|newest| newest <= peak));
                peaks.sort_unstable();
            }
            if let Some(work) = learned.work {
                prop_assert!(work.p10 <= work.p50 && work.p50 <= work.p90);
            }
        }
    }
}
