//! The published policies, each as its authors' code decides, over the core's event types.
//!
//! ```text
//!   mod       Baseline: an event goes to the board, then the policy's rule starts what may start
//!   board     what all keep: queue, GPUs, residents, retries
//!   artifact  the loop around the policies of the AEGIS artifact: a job a second, closed GPUs,
//!             recovery before everything
//!   exclusive, horus, lucid, aegis                the artifact's policies
//!   horus_paper, lucid_paper                      the rules of the original authors
//! ```
//!
//! The published systems assume what a server does not know: Horus a job's mean utilisation, Lucid
//! its sharing class, peak and duration, AEGIS with known peaks its peak. Those figures come in by
//! construction as [`Profiles`], never by events, and no other policy gets them.
//!
//! None uses the shim: a process that finds no memory dies, as it would without AEGIS.

mod aegis;
mod artifact;
mod board;
mod exclusive;
mod horus;
mod horus_paper;
mod lucid;
mod lucid_paper;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use aegis_common::action::Action;
use aegis_common::event::Event;
use aegis_common::id::{JobId, Moment};

use self::aegis::{Aegis, Need, Thresholds};
use self::artifact::Artifact;
use self::board::Board;
use self::exclusive::Exclusive;
use self::horus::Horus;
use self::horus_paper::HorusPaper;
use self::lucid::Lucid;
use self::lucid_paper::LucidPaper;
use super::scheduler::Scheduler;

/// The baselines by name.
pub const NAMES: [&str; 8] = [
    "exclusive",
    "horus",
    "horus-paper",
    "lucid",
    "lucid-paper",
    "aegis-released",
    "aegis-peaks",
    "aegis-gate-50",
];

/// What an offline profiling run would have told about a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Mean NVML utilisation alone, thousandths.
    pub utilisation: u32,
    /// Lucid's sharing score: 0 tiny, 1 medium, 2 jumbo.
    pub score: u32,
    /// Highest memory on any one of its GPUs as NVML shows it, context included, bytes.
    pub peak: u64,
    /// Predicted running time alone, seconds.
    pub predicted_s: u64,
}

impl Profile {
    /// A job nobody profiled: it shares with nobody.
    const UNKNOWN: Self = Self {
        utilisation: 1_000,
        score: 2,
        peak: u64::MAX,
        predicted_s: u64::MAX,
    };
}

/// Offline profiles by job.
pub type Profiles = BTreeMap<JobId, Profile>;

/// Lucid's sharing score of a job that keeps this mean share of its speed beside its partners.
/// Limits: `analyzer.py` of Lucid's published code.
#[must_use]
pub fn lucid_score(mean_speed: f64) -> u32 {
    if mean_speed < 0.85 {
        2
    } else if mean_speed < 0.95 {
        1
    } else {
        0
    }
}

/// The baseline of that name; `None` if there is none. Seven of [`NAMES`] want profiles of every
/// job; a job without one shares with nobody.
#[must_use]
pub fn named(name: &str, profiles: &Profiles) -> Option<Box<dyn Scheduler + Send>> {
    let aegis = |thresholds, need| artifact(Aegis::new(thresholds, need), profiles);
    Some(match name {
        "exclusive" => artifact(Exclusive, profiles),
        "horus" => artifact(Horus, profiles),
        "horus-paper" => boxed(HorusPaper, profiles),
        "lucid" => artifact(Lucid, profiles),
        "lucid-paper" => boxed(LucidPaper, profiles),
        "aegis-released" => aegis(Thresholds::RELEASED, Need::Floor),
        "aegis-peaks" => aegis(Thresholds::RELEASED, Need::KnownPeak),
        "aegis-gate-50" => aegis(Thresholds::LOW, Need::Floor),
        _ => return None,
    })
}

fn artifact(
    choice: impl artifact::Choice + Send + 'static,
    profiles: &Profiles,
) -> Box<dyn Scheduler + Send> {
    boxed(Artifact::new(choice), profiles)
}

fn boxed(rule: impl Rule + Send + 'static, profiles: &Profiles) -> Box<dyn Scheduler + Send> {
    Box::new(Baseline {
        board: Board::new(profiles.clone()),
        rule,
    })
}

/// What one policy adds to the board.
trait Rule {
    /// Takes note of an event the board has already taken.
    fn take(&mut self, _at: Moment, _event: &Event, _board: &Board) {}

    /// Starts what may start now. Returns when to look again if nothing happens before.
    fn pass(&mut self, at: Moment, board: &mut Board, out: &mut Vec<Action>) -> Option<Moment>;
}

/// A published policy at work.
struct Baseline<R> {
    board: Board,
    rule: R,
}

impl<R: Rule> Scheduler for Baseline<R> {
    fn step(&mut self, at: Moment, event: &Event) -> Vec<Action> {
        let mut out = Vec::new();
        self.board.take(event, &mut out);
        self.rule.take(at, event, &self.board);
        if let Some(at) = self.rule.pass(at, &mut self.board, &mut out) {
            out.push(Action::WakeAt { at });
        }
        out
    }

    fn instrumented(&self) -> bool {
        false
    }

    /// The artifact's risk window and one more: then the window shows the new state alone.
    fn samples_after_change(&self) -> u32 {
        31
    }
}
