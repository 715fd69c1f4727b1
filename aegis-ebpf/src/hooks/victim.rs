//! `mark_victim`: the kernel ends a process because memory ran out.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;

use crate::maps::{VICTIMS, followed};
use crate::sys::Task;

/// `PID_MAX_LIMIT` of 64-bit kernels.
const MAX_PID: u64 = 1 << 22;

#[raw_tracepoint(tracepoint = "mark_victim")]
fn victim(ctx: RawTracePointContext) -> i32 {
    remember(ctx.arg(0));
    0
}

/// The argument is a task since Linux 6.9, before that its pid; no kernel address is that small.
#[inline(always)]
fn remember(argument: u64) -> Option<()> {
    let pid = if argument <= MAX_PID {
        argument as u32
    } else {
        Task::new(argument).tgid()?
    };
    followed(pid)?;
    // As for signals.
    let _ = VICTIMS.insert(pid, 1, 0);
    Some(())
}
