//! The hash table behaves as a map, whatever the order of operations.

use std::collections::HashMap;

use proptest::prelude::*;
use shim_core::table::{Full, Table};

#[derive(Clone, Debug)]
enum Step {
    Insert(u64, u64),
    Remove(u64),
    Get(u64),
    RemoveOdd,
}

/// Few keys, so that they meet; aligned as addresses are, so that hashing has work to do.
fn key() -> impl Strategy<Value = u64> {
    (1u64..600).prop_map(|n| n << 21)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (key(), any::<u64>()).prop_map(|(key, value)| Step::Insert(key, value)),
        3 => key().prop_map(Step::Remove),
        1 => key().prop_map(Step::Get),
        1 => Just(Step::RemoveOdd),
    ]
}

proptest! {
    #[test]
    fn same_as_a_map(steps in prop::collection::vec(step(), 1..2000)) {
        let mut table = Table::new();
        let mut model = HashMap::new();
        for step in steps {
            match step {
                Step::Insert(key, value) => {
                    prop_assert_eq!(table.insert(key, value), Ok(model.insert(key, value)));
                }
                Step::Remove(key) => prop_assert_eq!(table.remove(key), model.remove(&key)),
                Step::Get(key) => prop_assert_eq!(table.get(key), model.get(&key).copied()),
                Step::RemoveOdd => {
                    let mut seen = Vec::new();
                    table.remove_where(|key, value| {
                        seen.push(key);
                        value % 2 == 1
                    });
                    seen.sort_unstable();
                    let mut all: Vec<u64> = model.keys().copied().collect();
                    all.sort_unstable();
                    prop_assert_eq!(seen, all, "each key is shown once");
                    model.retain(|_, value| *value % 2 == 0);
                }
            }
            prop_assert_eq!(table.len(), model.len());
        }
        let mut rest = HashMap::new();
        table.for_each(|key, value| { rest.insert(key, *value); });
        prop_assert_eq!(rest, model);
    }
}

#[test]
fn growing_to_a_million_keys_loses_none() {
    let mut table = Table::new();
    for key in 1..=1_000_000u64 {
        assert_eq!(table.insert(key << 9, key), Ok(None));
    }
    assert_eq!(table.len(), 1_000_000);
    for key in (1..=1_000_000u64).rev() {
        assert_eq!(table.get(key << 9), Some(key));
        assert_eq!(table.remove(key << 9), Some(key));
    }
    assert!(table.is_empty());
}

#[test]
fn keys_that_mark_slots_are_refused() {
    let mut table = Table::new();
    assert_eq!(table.insert(0, 1), Err(Full));
    assert_eq!(table.insert(u64::MAX, 1), Err(Full));
    assert_eq!(table.remove(0), None);
    assert_eq!(table.get(u64::MAX), None);
    assert!(table.is_empty());
}
