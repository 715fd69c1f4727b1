//! Blocks and physical memory against plain models, alone and by several threads.

use std::collections::HashMap;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use aegis_common::abi::ledger::{GpuLine, KIND_SLOTS, Kind};
use proptest::prelude::*;
use shim_core::account::Account;
use shim_core::blocks::{Block, Blocks};
use shim_core::physical::Physical;

fn line() -> GpuLine {
    let zero = || AtomicU64::new(0);
    GpuLine {
        uuid: [zero(), zero()],
        used: [const { AtomicU64::new(0) }; KIND_SLOTS],
        peak: zero(),
        inflight: zero(),
        allocs: zero(),
        frees: zero(),
        driver_ooms: zero(),
        denials: zero(),
        episodes: zero(),
        episode_bytes: zero(),
        last_refusal_ns: zero(),
        launches_at_refusal: zero(),
        unrecovered: zero(),
    }
}

const KINDS: [Kind; 3] = [Kind::Linear, Kind::Pool, Kind::Array];

proptest! {
    /// Allocations, frees and ends of contexts: the account's sums are those of the live blocks.
    #[test]
    fn sums_are_those_of_the_live_blocks(
        steps in prop::collection::vec((0u8..8, 1u64..40, 1u64..1 << 40, 0usize..3, 1u64..4), 1..400)
    ) {
        let (blocks, line) = (Blocks::new(), line());
        let account = Account(&line);
        let mut model: HashMap<u64, (u64, usize, u64)> = HashMap::new();
        let mut peak = 0;
        for (verb, address, bytes, kind, context) in steps {
            let address = address << 9;
            match verb {
                0..=3 => {
                    account.reserve(bytes);
                    let entered = Block::new(bytes, 3, KINDS[kind], context);
                    if let Some(earlier) = blocks.enter(address, entered).expect("memory") {
                        account.release(earlier.kind_index(), earlier.bytes);
                        model.remove(&address);
                    }
                    account.commit(KINDS[kind], bytes, bytes);
                    model.insert(address, (bytes, kind, context));
                }
                4 => {
                    account.reserve(bytes);
                    account.withdraw(bytes);
                }
                5 | 6 => {
                    let block = blocks.take(address);
                    let expected = model.remove(&address);
                    prop_assert_eq!(block.map(|block| block.bytes), expected.map(|block| block.0));
                    if let Some(block) = block {
                        prop_assert_eq!(block.gpu(), 3);
                        account.release(block.kind_index(), block.bytes);
                    }
                }
                _ => {
                    blocks.drop_context(context, |block| {
                        account.release(block.kind_index(), block.bytes);
                    });
                    model.retain(|_, block| block.2 != context);
                }
            }
            for (kind, name) in KINDS.into_iter().enumerate() {
                let expected: u64 =
                    model.values().filter(|block| block.1 == kind).map(|block| block.0).sum();
                prop_assert_eq!(line.used[name as usize].load(SeqCst), expected);
            }
            prop_assert_eq!(line.inflight.load(SeqCst), 0);
            peak = peak.max(account.used());
        }
        prop_assert_eq!(line.peak.load(SeqCst), peak);
    }

    /// Physical memory ends when its last handle is released and its last mapping is gone.
    #[test]
    fn physical_memory_is_counted_by_handles_and_mappings(
        steps in prop::collection::vec((0u8..6, 0usize..6, 0u64..6), 1..300)
    ) {
        struct Memory { bytes: u64, handles: Vec<u64>, mapped: Vec<u64> }
        let mut physical = Physical::new();
        let mut model: Vec<Memory> = Vec::new();
        let mut next = 0u64;
        let mut live = 0u64;
        for (verb, which, place) in steps {
            let address = (place + 1) << 21;
            let count = model.len().max(1);
            match (verb, model.get_mut(which % count)) {
                (0, _) => {
                    next += 1;
                    let bytes = next << 16;
                    prop_assert!(physical.create(next, Block::new(bytes, 0, Kind::Vmm, 0)));
                    live += bytes;
                    model.push(Memory { bytes, handles: vec![next], mapped: Vec::new() });
                }
                (1, Some(memory)) if !memory.handles.is_empty() => {
                    let handle = memory.handles.remove(0);
                    let token = physical.begin_release(handle).expect("a known handle");
                    let ended = physical.finish_release(token);
                    prop_assert_eq!(
                        ended.is_some(), memory.handles.is_empty() && memory.mapped.is_empty()
                    );
                    live -= ended.map_or(0, |block| block.bytes);
                }
                (2, Some(memory)) if !memory.handles.is_empty() => {
                    // The driver refuses the release: nothing changes.
                    let token = physical.begin_release(memory.handles[0]).expect("a known handle");
                    physical.undo_release(token);
                }
                (3, Some(memory)) if !memory.handles.is_empty() => {
                    let handle = memory.handles[0];
                    if model.iter().all(|memory| !memory.mapped.contains(&address)) {
                        physical.map(address, 1 << 21, handle);
                        model[which % count].mapped.push(address);
                    }
                }
                (4, _) => {
                    let mut ended = 0;
                    physical.unmap(address, 1 << 21, |block| ended += block.bytes);
                    let owner = model.iter_mut().find(|memory| memory.mapped.contains(&address));
                    let mut expected = 0;
                    if let Some(memory) = owner {
                        memory.mapped.retain(|mapped| *mapped != address);
                        if memory.mapped.is_empty() && memory.handles.is_empty() {
                            expected = memory.bytes;
                        }
                    }
                    prop_assert_eq!(ended, expected);
                    live -= ended;
                }
                (5, Some(memory)) if !memory.mapped.is_empty() => {
                    // The same handle again, or one never seen before.
                    next += 1;
                    let handle = match memory.handles.first() {
                        Some(handle) if place % 2 == 0 => *handle,
                        _ => next,
                    };
                    physical.retain(handle, memory.mapped[0] + place);
                    memory.handles.push(handle);
                }
                _ => {}
            }
            model.retain(|memory| !memory.handles.is_empty() || !memory.mapped.is_empty());
            prop_assert_eq!(live, model.iter().map(|memory| memory.bytes).sum::<u64>());
        }
    }
}

#[test]
fn an_unmapped_range_can_span_mappings() {
    let mut physical = Physical::new();
    for n in 1..=3 {
        physical.create(n, Block::new(n, 0, Kind::Vmm, 0));
        physical.map(n * 100, 100, n);
        let token = physical.begin_release(n).expect("known");
        assert!(physical.finish_release(token).is_none(), "still mapped");
    }
    let mut ended = Vec::new();
    physical.unmap(100, 200, |block| ended.push(block.bytes));
    assert_eq!(ended, [1, 2]);
}

#[test]
fn threads_sharing_one_limit_never_hold_more() {
    const LIMIT: u64 = 1000;
    let (blocks, line, most) = (Blocks::new(), line(), AtomicU64::new(0));
    let next = AtomicUsize::new(1);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (blocks, line, most, next) = (&blocks, &line, &most, &next);
            scope.spawn(move || {
                let account = Account(line);
                let mut mine = Vec::new();
                for round in 0..20_000u64 {
                    let bytes = 100 + (round * 7 + thread * 13) % 150;
                    if account.reserve(bytes) <= LIMIT {
                        let address = next.fetch_add(1, SeqCst) as u64 * 512;
                        let block = Block::new(bytes, 0, Kind::Linear, 0);
                        assert_eq!(blocks.enter(address, block), Ok(None));
                        account.commit(Kind::Linear, bytes, bytes);
                        most.fetch_max(account.used(), SeqCst);
                        mine.push(address);
                    } else {
                        account.withdraw(bytes);
                    }
                    if (mine.len() > 2 || round % 3 == 0)
                        && let Some(block) = mine.pop().and_then(|address| blocks.take(address))
                    {
                        account.release(block.kind_index(), block.bytes);
                    }
                }
                for address in mine {
                    let block = blocks.take(address).expect("this thread's block");
                    account.release(block.kind_index(), block.bytes);
                }
            });
        }
    });
    assert!(most.load(SeqCst) <= LIMIT);
    assert!(most.load(SeqCst) > 0);
    assert_eq!(Account(&line).held(), 0);
    assert_eq!(line.allocs.load(SeqCst), line.frees.load(SeqCst));
}

#[test]
fn refusals_are_grouped_into_episodes() {
    use shim_core::episode::{Refuser, open, refuse, succeed};
    let line = line();
    assert!(refuse(&line, Refuser::Shim, 500, 1, 10));
    assert!(!refuse(&line, Refuser::Driver, 900, 2, 11));
    succeed(&line, 499);
    assert!(open(&line));
    succeed(&line, 500);
    assert!(!open(&line));
    assert!(refuse(&line, Refuser::Driver, 900, 3, 12));
    assert_eq!(line.episodes.load(SeqCst), 2);
    assert_eq!(line.denials.load(SeqCst), 1);
    assert_eq!(line.driver_ooms.load(SeqCst), 2);
    assert_eq!(line.episode_bytes.load(SeqCst), 900);
    assert_eq!(line.last_refusal_ns.load(SeqCst), 3);
    assert_eq!(line.launches_at_refusal.load(SeqCst), 12);
}
