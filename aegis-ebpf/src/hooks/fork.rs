//! `sched_process_fork(parent, child)`: the child of a followed process is followed.

use aegis_common::abi::lifecycle::{Followed, KIND_FORK, Record};
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;

use super::record;
use crate::maps::{FOLLOWED, count_loss, followed, send};
use crate::sys::Task;

#[raw_tracepoint(tracepoint = "sched_process_fork")]
fn fork(ctx: RawTracePointContext) -> i32 {
    follow_child(Task::new(ctx.arg(0)), Task::new(ctx.arg(1)));
    0
}

#[inline(always)]
fn follow_child(parent: Task, child: Task) -> Option<()> {
    let parent = parent.tgid()?;
    let of = followed(parent)?;
    let pid = child.tgid()?;
    // A thread's id differs from that of its process.
    if child.pid()? != pid {
        return None;
    }
    let of = Followed {
        root: of.root,
        start_ns: child.start_ns()?,
    };
    if FOLLOWED.insert(pid, of, 0).is_err() {
        count_loss();
    }
    send(&Record {
        parent,
        ..record(KIND_FORK, pid, of)
    });
    Some(())
}
