//! Policies by name: the published baselines and the core's modes.

use aegis_common::policy::{Mode, Order, Policy};

use super::baseline::{self, Profiles};
use super::scheduler::Scheduler;
use crate::scheduler::Core;

/// What every ratio is relative to.
pub const EXCLUSIVE: &str = "exclusive";

/// The core's modes: `control` is the pressure gate, `shortest` the gentle mode with the shortest
/// expected job first.
pub const OURS: [&str; 5] = ["control", "gentle", "balanced", "throughput", "shortest"];

/// A name no policy has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no policy `{wanted}`: there are {}", names().collect::<Vec<_>>().join(", "))]
pub struct UnknownPolicy {
    /// The name asked for.
    pub wanted: String,
}

/// All names, baselines first.
pub fn names() -> impl Iterator<Item = &'static str> {
    baseline::NAMES.into_iter().chain(OURS)
}

/// The policy's name as it is kept.
///
/// # Errors
/// There is no such policy.
pub fn named(wanted: &str) -> Result<&'static str, UnknownPolicy> {
    let wanted = wanted.trim();
    names()
        .find(|known| *known == wanted)
        .ok_or_else(|| UnknownPolicy {
            wanted: wanted.to_owned(),
        })
}

/// It is the core.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    OURS.contains(&name)
}

/// A fresh scheduler of that name. Only baselines that were published with an offline profiler look
/// at the profiles.
#[must_use]
pub fn scheduler(name: &str, profiles: &Profiles) -> Box<dyn Scheduler> {
    match baseline::named(name, profiles) {
        Some(baseline) => baseline,
        None => Box::new(Core::new()),
    }
}

/// The thresholds that the core is told; those of the machine for a baseline, which ignores them.
#[must_use]
pub fn told(name: &str, default: &Policy) -> Policy {
    let (mode, order) = match name {
        "gentle" => (Mode::Gentle, Order::Fifo),
        "balanced" => (Mode::Balanced, Order::Fifo),
        "throughput" => (Mode::Throughput, Order::Fifo),
        "shortest" => (Mode::Balanced, Order::Shortest),
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
    fn every_name_is_found_and_a_wrong_one_is_told_the_right_ones() {
        for name in names() {
            assert_eq!(named(name), Ok(name));
            assert_eq!(is_ours(name), OURS.contains(&name));
        }
        let error = named("luzid").unwrap_err().to_string();
        assert!(error.contains("luzid") && error.contains("lucid-paper"));
    }

    #[test]
    fn the_modes_differ_in_what_the_core_is_told() {
        let default = Policy::default();
        let told: Vec<Policy> = OURS.iter().map(|name| told(name, &default)).collect();
        for (place, one) in told.iter().enumerate() {
            assert!(told.iter().skip(place + 1).all(|other| other != one));
        }
    }
}
