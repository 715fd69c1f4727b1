//! Launch traces: which launches each thread made last, published by the shim.
//!
//! They follow the ledger in the same memory: [`TRACES`] of them from [`TRACES_OFFSET`]. Trace `i`
//! belongs to the thread of launch line `i`; threads of later lines have none. No launch reads a
//! clock: the daemon finds the repeating part of the entries and times it by [`Trace::marks`]
//! (contract C6).
//!
//! A launch is the number `handle << 32 | grid`: the low half of the function's or executable
//! graph's handle, and a mix of the grid's dimensions (0 for graphs), so that a larger batch is
//! another sequence. An entry is the wrapping sum of all launches so far: differences of
//! neighbours are the launches, and what was launched between two looks at a trace must add up to
//! what the sequence says, even where the entries in between are overwritten.

use core::sync::atomic::AtomicU64;

use super::ledger::LEDGER_BYTES;

/// Threads whose launches are traced: training launches from one or two.
pub const TRACES: usize = 16;
/// Launches that a trace remembers; a power of two. Two training steps of a 32-layer transformer
/// (about 4,000 launches each without graphs) fit.
pub const TRACE_ENTRIES: usize = 8192;
/// Offset of the first trace.
pub const TRACES_OFFSET: usize = LEDGER_BYTES;
/// Bytes of a ledger with its traces. The pages of traces that no thread writes take no memory.
pub const TRACED_LEDGER_BYTES: usize = TRACES_OFFSET + TRACES * size_of::<Trace>();
/// The daemon's ledgers have traces since this [`super::ABI_MINOR`].
pub const TRACES_SINCE_MINOR: u32 = 1;

/// The launches of one thread. Plain (relaxed) stores by that thread alone, in the order `sum`,
/// entry, `marks`; so the entries that `marks` counts are complete.
#[repr(C, align(64))]
pub struct Trace {
    /// Launches traced so far; the next one is written at `marks % TRACE_ENTRIES`.
    pub marks: AtomicU64,
    /// Wrapping sum of the launches so far: the last entry, for the next one.
    pub sum: AtomicU64,
    /// Reserved, 0.
    pub reserved: [AtomicU64; 6],
    /// The sums after the last [`TRACE_ENTRIES`] launches.
    pub entries: [AtomicU64; TRACE_ENTRIES],
}
