//! What the programs share with each other and with the daemon.

use aegis_common::abi::lifecycle::{Followed, Record};
use aya_ebpf::macros::map;
use aya_ebpf::maps::{HashMap, LruHashMap, PerCpuArray, RingBuf};

use crate::sys;

/// Most processes followed at once.
const MAX_FOLLOWED: u32 = 65_536;
/// Most processes whose last signal is remembered until they end.
const MAX_SIGNALS: u32 = 8_192;
/// 16,000 events of 72 bytes, header included. The daemon's tests load it smaller.
const RING_BYTES: u32 = 1 << 20;

/// Who sent a signal.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Signal {
    pub(crate) number: u32,
    pub(crate) code: i32,
    pub(crate) sender: u32,
    pub(crate) uid: u32,
}

/// The followed processes by pid.
#[map]
pub(crate) static FOLLOWED: HashMap<u32, Followed> = HashMap::with_max_entries(MAX_FOLLOWED, 0);

/// The last deadly signal to each followed process.
#[map]
pub(crate) static SIGNALS: LruHashMap<u32, Signal> = LruHashMap::with_max_entries(MAX_SIGNALS, 0);

/// Followed processes the kernel ends for lack of memory.
#[map]
pub(crate) static VICTIMS: LruHashMap<u32, u8> = LruHashMap::with_max_entries(MAX_SIGNALS, 0);

/// To the daemon.
#[map]
static EVENTS: RingBuf = RingBuf::with_byte_size(RING_BYTES, 0);

/// Events the daemon never sees, and children that found no room in [`FOLLOWED`].
#[map]
static DROPPED: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// The entry of a followed process.
#[inline(always)]
pub(crate) fn followed(pid: u32) -> Option<Followed> {
    FOLLOWED.get_ptr(pid).map(sys::copy)
}

/// Sends an event, or counts it as lost.
#[inline(always)]
pub(crate) fn send(record: &Record) {
    if EVENTS.output::<Record>(record, 0).is_err() {
        count_loss();
    }
}

/// One event is lost.
#[inline(always)]
pub(crate) fn count_loss() {
    if let Some(counter) = DROPPED.get_ptr_mut(0) {
        sys::increment(counter);
    }
}
