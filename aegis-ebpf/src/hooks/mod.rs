//! One file per tracepoint.

mod exec;
mod exit;
mod fork;
mod signal;
mod victim;

use aegis_common::abi::lifecycle::{Followed, Record};
use aya_ebpf::helpers::bpf_get_current_comm;

/// A record about a followed process with the fields every kind has.
#[inline(always)]
fn record(kind: u32, pid: u32, of: Followed) -> Record {
    Record {
        kind,
        pid,
        start_ns: of.start_ns,
        root: of.root,
        comm: bpf_get_current_comm().unwrap_or_default(),
        ..Record::default()
    }
}
