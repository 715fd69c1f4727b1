//! `sched_process_exec(task, old_pid, bprm)`: the process runs another program.

use aegis_common::abi::lifecycle::KIND_EXEC;
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;

use super::record;
use crate::maps::{followed, send};
use crate::sys::Task;

#[raw_tracepoint(tracepoint = "sched_process_exec")]
fn exec(ctx: RawTracePointContext) -> i32 {
    tell(Task::new(ctx.arg(0)));
    0
}

#[inline(always)]
fn tell(task: Task) -> Option<()> {
    let pid = task.tgid()?;
    send(&record(KIND_EXEC, pid, followed(pid)?));
    Some(())
}
