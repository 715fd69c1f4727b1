//! `sched_process_exit(task, …)`, once per thread: the last one ends the process.

use aegis_common::abi::lifecycle::{FLAG_OOM, FLAG_SENDER, KIND_EXIT, Record};
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;

use super::record;
use crate::maps::{FOLLOWED, SIGNALS, VICTIMS, followed, send};
use crate::sys::{Task, copy};

/// The part of a status that is a signal.
const SIGNAL: u32 = 0x7f;

#[raw_tracepoint(tracepoint = "sched_process_exit")]
fn exit(ctx: RawTracePointContext) -> i32 {
    forget(Task::new(ctx.arg(0)));
    0
}

#[inline(always)]
fn forget(task: Task) -> Option<()> {
    let pid = task.tgid()?;
    let of = followed(pid)?;
    // Of two threads that both see themselves last, one removes the entry and reports.
    if !task.is_last() || FOLLOWED.remove(pid).is_err() {
        return None;
    }
    let mut record = Record {
        status: task.status()?,
        ..record(KIND_EXIT, pid, of)
    };
    if let Some(signal) = SIGNALS.get_ptr(pid).map(copy) {
        let _ = SIGNALS.remove(pid);
        if record.status & SIGNAL == signal.number {
            record.flags |= FLAG_SENDER;
            record.sender = signal.sender;
            record.sender_uid = signal.uid;
            record.signal_code = signal.code;
        }
    }
    if VICTIMS.remove(pid).is_ok() {
        record.flags |= FLAG_OOM;
    }
    send(&record);
    Some(())
}
