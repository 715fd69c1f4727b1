//! What is compared: the published baselines and the core's modes.

use std::fmt;

use aegis_common::policy::{Mode, Order, Policy};
use aegis_daemon::replay::baseline::{self, Profiles};
use aegis_daemon::replay::scheduler::Scheduler;
use aegis_daemon::scheduler::Core;
use anyhow::{Result, bail};

/// What every ratio is relative to.
pub(crate) const EXCLUSIVE: &str = "exclusive";

/// The core's modes by the evaluation's names.
pub(crate) const OURS: [&str; 5] = ["control", "gentle", "balanced", "throughput", "shortest"];

/// A policy and how much it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Contender {
    /// One of [`baseline::NAMES`] or [`OURS`].
    pub(crate) name: &'static str,
    pub(crate) history: History,
}

/// Of what share of the jobs the command was seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum History {
    /// Of none.
    Cold,
    /// Of that many in a hundred.
    Warm(u8),
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cold => f.write_str("cold"),
            Self::Warm(percent) => write!(f, "warm{percent}"),
        }
    }
}

/// All names, baselines first.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    baseline::NAMES.into_iter().chain(OURS)
}

/// The contenders of these names, or all; the core's modes with each of these histories.
/// Exclusive use is always among them, first.
///
/// # Errors
/// A name nobody has.
pub(crate) fn contenders(wanted: &[String], histories: &[History]) -> Result<Vec<Contender>> {
    for name in wanted {
        if !names().any(|known| known == name) {
            let all: Vec<_> = names().collect();
            bail!("no policy `{name}`: there are {}", all.join(", "));
        }
    }
    let chosen = |name: &str| {
        name == EXCLUSIVE || wanted.is_empty() || wanted.iter().any(|wanted| wanted == name)
    };
    let mut contenders = Vec::new();
    for name in names().filter(|name| chosen(name)) {
        if is_ours(name) {
            let known = histories.iter().map(|&history| Contender { name, history });
            contenders.extend(known);
        } else {
            let history = History::Cold;
            contenders.push(Contender { name, history });
        }
    }
    Ok(contenders)
}

/// It is the core.
pub(crate) fn is_ours(name: &str) -> bool {
    OURS.contains(&name)
}

/// A fresh scheduler of that name.
pub(crate) fn scheduler(name: &str, profiles: &Profiles) -> Box<dyn Scheduler> {
    match baseline::named(name, profiles) {
        Some(baseline) => baseline,
        None => Box::new(Core::new()),
    }
}

/// The thresholds that the core is told; those of the machine for a baseline, which ignores them.
pub(crate) fn told(name: &str, default: &Policy) -> Policy {
    let (mode, order) = match name {
        "gentle" => (Mode::Gentle, Order::Fifo),
        "balanced" => (Mode::Balanced, Order::Fifo),
        "throughput" => (Mode::Throughput, Order::Fifo),
        "shortest" => (Mode::Gentle, Order::Shortest),
        _ => (Mode::Gate, Order::Fifo),
    };
    Policy {
        mode,
        order,
        ..default.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusive_is_always_there_and_only_the_core_learns() {
        let both = [History::Cold, History::Warm(60)];
        let chosen = contenders(&["lucid".into(), "control".into()], &both).unwrap();
        let shown: Vec<_> = chosen
            .iter()
            .map(|one| format!("{} {}", one.name, one.history))
            .collect();
        let expected = [
            "exclusive cold",
            "lucid cold",
            "control cold",
            "control warm60",
        ];
        assert_eq!(shown, expected);
        assert_eq!(contenders(&[], &both).unwrap().len(), 8 + 2 * 5);
        let error = contenders(&["luzid".into()], &both).unwrap_err();
        assert!(error.to_string().contains("lucid-paper"), "{error}");
    }
}
