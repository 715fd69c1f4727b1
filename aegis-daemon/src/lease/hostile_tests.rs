//! Ledgers whose header is valid and whose content lies.
#![cfg(test)]

use std::mem::offset_of;

use aegis_common::abi::ledger::{
    GPU_LINES_OFFSET, GpuLine, Kind, LAUNCH_LINES_OFFSET, LEDGER_BYTES, LaunchLine, LedgerHeader,
};
use aegis_common::abi::{ABI_MAJOR, GpuUuid, MAGIC};
use proptest::prelude::*;

use super::*;

const GIB: u64 = 1 << 30;
const GPU: GpuUuid = [1; 16];
const CAPACITY: u64 = 80 * GIB;
const ALLOWANCE: u64 = GIB / 2;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn headed(mut bytes: Vec<u8>) -> Vec<u8> {
    put(
        &mut bytes,
        offset_of!(LedgerHeader, magic),
        &MAGIC.to_ne_bytes(),
    );
    put(
        &mut bytes,
        offset_of!(LedgerHeader, abi_major),
        &ABI_MAJOR.to_ne_bytes(),
    );
    let size = u32::try_from(LEDGER_BYTES).unwrap();
    put(
        &mut bytes,
        offset_of!(LedgerHeader, size),
        &size.to_ne_bytes(),
    );
    bytes
}

/// A ledger with one line for [`GPU`] and these values at these offsets in it.
fn ledger(fields: &[(usize, u64)]) -> LedgerSnapshot {
    let mut bytes = headed(vec![0; LEDGER_BYTES]);
    put(
        &mut bytes,
        offset_of!(LedgerHeader, gpu_lines),
        &1u32.to_ne_bytes(),
    );
    put(&mut bytes, GPU_LINES_OFFSET, &GPU);
    for (offset, value) in fields {
        put(&mut bytes, GPU_LINES_OFFSET + offset, &value.to_ne_bytes());
    }
    LedgerSnapshot::decode(&bytes).unwrap()
}

fn used(kind: Kind) -> usize {
    offset_of!(GpuLine, used) + kind as usize * 8
}

fn capacity(uuid: &GpuUuid) -> Option<u64> {
    (*uuid == GPU).then_some(CAPACITY)
}

fn sane(previous: Option<&LedgerSnapshot>, now: LedgerSnapshot, nvml: u64) -> LedgerSnapshot {
    let proof = Proof {
        uuid: GPU,
        bytes: nvml,
    };
    sanitise(previous, now, capacity, &[proof], ALLOWANCE)
}

#[test]
fn an_honest_ledger_passes_unchanged() {
    let now = ledger(&[
        (used(Kind::Linear), 6 * GIB),
        (offset_of!(GpuLine, peak), 7 * GIB),
        (offset_of!(GpuLine, inflight), GIB),
        (offset_of!(GpuLine, allocs), 3),
    ]);
    assert_eq!(sane(None, now.clone(), 6 * GIB + ALLOWANCE), now);
    assert_eq!(sane(Some(&now), now.clone(), 0), now);
}

#[test]
fn claiming_nothing_while_holding_six_gib_is_corrected_by_nvml() {
    for now in [ledger(&[]), LedgerSnapshot::default()] {
        let sane = sane(None, now, 6 * GIB + ALLOWANCE);
        assert_eq!(sane.gpu(&GPU).unwrap().used, 6 * GIB);
        assert_eq!(sane.warnings.len(), 1);
        assert!(sane.warnings[0].contains("NVML"), "{:?}", sane.warnings);
    }
}

#[test]
fn wrapping_sums_saturate_at_the_capacity() {
    let now = ledger(&[
        (used(Kind::Linear), u64::MAX),
        (used(Kind::Vmm), u64::MAX),
        (offset_of!(GpuLine, inflight), u64::MAX),
        (offset_of!(GpuLine, peak), u64::MAX),
    ]);
    let sane = sane(None, now, 0);
    let gpu = sane.gpu(&GPU).unwrap();
    assert_eq!((gpu.used, gpu.inflight, gpu.peak), (CAPACITY, 0, CAPACITY));
    assert_eq!(sane.warnings.len(), 1);
}

#[test]
fn managed_memory_may_exceed_the_gpu_without_suspicion() {
    let sane = sane(None, ledger(&[(used(Kind::Managed), 100 * GIB)]), 0);
    assert_eq!(sane.gpu(&GPU).unwrap().used, CAPACITY);
    assert!(sane.warnings.is_empty(), "{:?}", sane.warnings);
}

#[test]
fn counters_do_not_go_back_and_lines_do_not_vanish() {
    let first = ledger(&[
        (offset_of!(GpuLine, allocs), 10),
        (offset_of!(GpuLine, denials), 2),
        (offset_of!(GpuLine, peak), GIB),
    ]);
    let second = sane(Some(&first), ledger(&[(offset_of!(GpuLine, allocs), 9)]), 0);
    let gpu = second.gpu(&GPU).unwrap();
    assert_eq!((gpu.allocs, gpu.denials, gpu.peak), (10, 2, GIB));
    assert_eq!(second.warnings.len(), 1);
    let third = sane(Some(&second), LedgerSnapshot::default(), 0);
    assert_eq!(third.gpu(&GPU).unwrap().allocs, 10);
}

#[test]
fn two_lines_of_one_gpu_count_together() {
    let mut bytes = headed(vec![0; LEDGER_BYTES]);
    put(
        &mut bytes,
        offset_of!(LedgerHeader, gpu_lines),
        &2u32.to_ne_bytes(),
    );
    for line in 0..2 {
        let at = GPU_LINES_OFFSET + line * size_of::<GpuLine>();
        put(&mut bytes, at, &GPU);
        put(&mut bytes, at + used(Kind::Pool), &GIB.to_ne_bytes());
    }
    let snapshot = LedgerSnapshot::decode(&bytes).unwrap();
    assert_eq!(snapshot.gpus.len(), 1);
    assert_eq!(snapshot.gpu(&GPU).unwrap().used, 2 * GIB);
}

#[test]
fn an_end_is_an_oom_only_if_nothing_followed_the_refusal() {
    let refused = [
        (offset_of!(GpuLine, unrecovered), 1),
        (offset_of!(GpuLine, episode_bytes), GIB),
        (offset_of!(GpuLine, launches_at_refusal), 5),
    ];
    let mut snapshot = ledger(&refused);
    snapshot.launches.kernels = 5;
    assert_eq!(snapshot.open_refusal(&GPU), Some(GIB));
    snapshot.launches.graphs = 1;
    assert_eq!(snapshot.open_refusal(&GPU), None);
    assert_eq!(ledger(&refused[1..]).open_refusal(&GPU), None);
}

#[test]
fn launches_of_all_threads_add_up() {
    let mut bytes = headed(vec![0; LEDGER_BYTES]);
    for line in [0, 63] {
        let at = LAUNCH_LINES_OFFSET + line * size_of::<LaunchLine>();
        put(
            &mut bytes,
            at + offset_of!(LaunchLine, kernels),
            &7u64.to_ne_bytes(),
        );
        put(
            &mut bytes,
            at + offset_of!(LaunchLine, copies),
            &u64::MAX.to_ne_bytes(),
        );
    }
    let launches = LedgerSnapshot::decode(&bytes).unwrap().launches;
    assert_eq!((launches.kernels, launches.copies), (14, u64::MAX));
    assert_eq!(launches.total(), u64::MAX);
}

#[test]
fn each_damage_has_its_own_error() {
    let valid = headed(vec![0; LEDGER_BYTES]);
    let damaged = |at: usize| {
        let mut bytes = valid.clone();
        bytes[at] ^= 0x40;
        LedgerSnapshot::decode(&bytes).unwrap_err()
    };
    assert!(matches!(damaged(0), LedgerError::Magic(_)));
    assert!(matches!(
        damaged(offset_of!(LedgerHeader, abi_major)),
        LedgerError::Version(0x41)
    ));
    assert!(matches!(
        damaged(offset_of!(LedgerHeader, size)),
        LedgerError::HeaderSize(_)
    ));
    let cut = LedgerSnapshot::decode(&valid[..5000]);
    assert!(matches!(cut, Err(LedgerError::Size(5000))));
}

#[test]
fn ever_new_gpus_do_not_pile_up() {
    let mut kept = None;
    for round in 2..=200 {
        let mut now = ledger(&[(offset_of!(GpuLine, allocs), 1)]);
        now.gpus[0].uuid = [round; 16];
        let sane = sanitise(kept.as_ref(), now, capacity, &[], ALLOWANCE);
        assert_eq!(sane.gpus.len(), 1);
        kept = Some(sane);
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), LEDGER_BYTES).prop_map(headed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_in_a_ledger_misleads(
        mut first in bytes(),
        mut second in bytes(),
        nvml: u64,
        known: bool,
    ) {
        if known {
            put(&mut first, GPU_LINES_OFFSET, &GPU);
            put(&mut second, GPU_LINES_OFFSET, &GPU);
        }
        let first = sane(None, LedgerSnapshot::decode(&first).unwrap(), 0);
        let second = sane(Some(&first), LedgerSnapshot::decode(&second).unwrap(), nvml);
        for gpu in first.gpus.iter().chain(&second.gpus) {
            let capacity = capacity(&gpu.uuid).unwrap_or(1 << 44);
            prop_assert!(gpu.used.checked_add(gpu.inflight).unwrap() <= capacity);
            prop_assert!(gpu.used <= gpu.peak && gpu.peak <= capacity);
        }
        let proven = nvml.saturating_sub(ALLOWANCE).min(CAPACITY);
        prop_assert!(second.gpu(&GPU).map_or(0, |gpu| gpu.used) >= proven);
        for before in first.gpus.iter().filter(|gpu| gpu.uuid == GPU) {
            let after = second.gpu(&GPU).unwrap();
            prop_assert!(after.allocs >= before.allocs && after.peak >= before.peak);
        }
        prop_assert!(second.launches.total() >= first.launches.total());
        prop_assert!(second.gpus.len() <= 34);
    }

    #[test]
    fn any_bytes_are_read_without_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..LEDGER_BYTES + 1),
    ) {
        prop_assert!(LedgerSnapshot::decode(&bytes).is_err());
    }
}
