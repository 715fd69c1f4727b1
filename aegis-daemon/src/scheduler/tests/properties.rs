//! What must hold whatever happens.

use std::collections::BTreeMap;

use aegis_common::action::{Action, GrowAnswer};
use aegis_common::reason::{RetryReason, StopReason};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::random::{lives, play};

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn invariants_hold_through_any_life((policy, happenings) in lives()) {
        play(policy, &happenings);
    }
}

/// The lives above are worth nothing if what they check never happens.
#[test]
fn the_lives_reach_every_kind_of_action() {
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for _ in 0..150 {
        let (policy, happenings) = lives().new_tree(&mut runner).expect("a life").current();
        let world = play(policy, &happenings);
        for action in world.journal.iter().flat_map(|(_, actions)| actions) {
            *seen.entry(kind(action)).or_default() += 1;
        }
    }
    for kind in [
        "start",
        "evict",
        "rescue",
        "time limit",
        "cancel",
        "oom",
        "evicted",
        "rescued",
        "granted",
        "wait",
        "denied",
        "finish",
    ] {
        assert!(seen.get(kind).is_some_and(|&count| count >= 2), "{seen:?}");
    }
}

fn kind(action: &Action) -> &'static str {
    match action {
        Action::Start { .. } => "start",
        Action::Stop { why, .. } => match why {
            StopReason::Evicted { .. } => "evict",
            StopReason::Rescue { .. } => "rescue",
            StopReason::TimeLimit { .. } => "time limit",
            StopReason::Cancelled { .. } => "cancel",
        },
        Action::Retry { why, .. } => match why {
            RetryReason::Oom { .. } => "oom",
            RetryReason::Evicted { .. } => "evicted",
            RetryReason::Rescue => "rescued",
        },
        Action::Answer { answer, .. } => match answer {
            GrowAnswer::Granted { .. } => "granted",
            GrowAnswer::Wait { .. } => "wait",
            GrowAnswer::Denied { .. } => "denied",
        },
        Action::Finish { .. } => "finish",
        Action::SetLease { .. } => "lease",
        Action::Learn { .. } => "learn",
        Action::WakeAt { .. } => "wake",
    }
}
