//! The frozen layout. A failing assertion here means the ABI changed: raise the version.

use core::mem::{offset_of, size_of};

use super::MAX_GPUS;
use super::lease::{LEASE_BYTES, LEASE_LINES_OFFSET, LeaseHeader, LeaseLine};
use super::ledger::{
    BYPASS_SLOTS, BYPASSES, GPU_LINES_OFFSET, GpuLine, KIND_SLOTS, KINDS, LAUNCH_LINES,
    LAUNCH_LINES_OFFSET, LEDGER_BYTES, LaunchLine, LedgerHeader,
};
use super::trace::{TRACE_ENTRIES, TRACED_LEDGER_BYTES, TRACES, TRACES_OFFSET, Trace};

const _: () = {
    assert!(KINDS <= KIND_SLOTS && BYPASSES <= BYPASS_SLOTS);
    assert!(size_of::<LedgerHeader>() <= GPU_LINES_OFFSET);
    assert!(offset_of!(LedgerHeader, abi_major) == 8);
    assert!(offset_of!(LedgerHeader, size) == 16);
    assert!(offset_of!(LedgerHeader, captures_open) == 20);
    assert!(offset_of!(LedgerHeader, first_launch_ns) == 24);
    assert!(offset_of!(LedgerHeader, unknown_lookups) == 32);
    assert!(offset_of!(LedgerHeader, launch_lines) == 40);
    assert!(offset_of!(LedgerHeader, gpu_lines) == 44);
    assert!(offset_of!(LedgerHeader, bypass) == 48);
    assert!(size_of::<GpuLine>() == 256);
    assert!(offset_of!(GpuLine, used) == 16);
    assert!(offset_of!(GpuLine, peak) == 80);
    assert!(offset_of!(GpuLine, inflight) == 88);
    assert!(offset_of!(GpuLine, allocs) == 96);
    assert!(offset_of!(GpuLine, frees) == 104);
    assert!(offset_of!(GpuLine, driver_ooms) == 112);
    assert!(offset_of!(GpuLine, denials) == 120);
    assert!(offset_of!(GpuLine, episodes) == 128);
    assert!(offset_of!(GpuLine, episode_bytes) == 136);
    assert!(offset_of!(GpuLine, last_refusal_ns) == 144);
    assert!(offset_of!(GpuLine, launches_at_refusal) == 152);
    assert!(offset_of!(GpuLine, unrecovered) == 160);
    assert!(size_of::<LaunchLine>() == 128);
    assert!(offset_of!(LaunchLine, graphs) == 8);
    assert!(offset_of!(LaunchLine, copies) == 16);
    assert!(offset_of!(LaunchLine, memsets) == 24);
    assert!(offset_of!(LaunchLine, host_functions) == 32);
    assert!(offset_of!(LaunchLine, tid) == 40);
    assert!(offset_of!(LaunchLine, gpu) == 48);
    assert!(LAUNCH_LINES_OFFSET == 8192 && LEDGER_BYTES == 16384);
    assert!(TRACE_ENTRIES.is_power_of_two() && TRACES <= LAUNCH_LINES);
    assert!(offset_of!(Trace, marks) == 0 && offset_of!(Trace, sum) == 8);
    assert!(offset_of!(Trace, entries) == 64);
    assert!(size_of::<Trace>() == 65600);
    assert!(TRACES_OFFSET == 16384 && TRACED_LEDGER_BYTES == 1_065_984);
    assert!(size_of::<LeaseHeader>() <= LEASE_LINES_OFFSET);
    assert!(offset_of!(LeaseHeader, abi_major) == 8);
    assert!(offset_of!(LeaseHeader, lines) == 16);
    assert!(offset_of!(LeaseHeader, heartbeat_ns) == 24);
    assert!(size_of::<LeaseLine>() == 64);
    assert!(offset_of!(LeaseLine, limit) == 16);
    assert!(offset_of!(LeaseLine, virtual_total) == 24);
    assert!(offset_of!(LeaseLine, flags) == 32);
    assert!(LEASE_LINES_OFFSET + MAX_GPUS * size_of::<LeaseLine>() <= LEASE_BYTES);
};
