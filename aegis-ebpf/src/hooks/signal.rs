//! `signal_generate(number, info, task, group, result)`: who sends a followed process a signal it
//! may die of. Told to the daemon only with its end.

use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_get_current_uid_gid};
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;

use crate::maps::{SIGNALS, Signal, followed};
use crate::sys::{Task, sender_is_kernel, signal_code};

/// Signals that end no process by default (signal(7)): CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG,
/// WINCH.
const HARMLESS: u64 = 1 << 17 | 1 << 18 | 1 << 19 | 1 << 20 | 1 << 21 | 1 << 22 | 1 << 23 | 1 << 28;
/// `TRACE_SIGNAL_DELIVERED`: neither ignored nor already pending.
const DELIVERED: i32 = 0;

#[raw_tracepoint(tracepoint = "signal_generate")]
fn signal(ctx: RawTracePointContext) -> i32 {
    if ctx.arg::<i32>(4) == DELIVERED {
        remember(ctx.arg::<i32>(0), ctx.arg(1), Task::new(ctx.arg(2)));
    }
    0
}

#[inline(always)]
fn remember(number: i32, info: u64, target: Task) -> Option<()> {
    let number = number as u32;
    if number > 64 || (number < 64 && HARMLESS >> number & 1 == 1) {
        return None;
    }
    let pid = target.tgid()?;
    followed(pid)?;
    let kernel = sender_is_kernel(info);
    let signal = Signal {
        number,
        code: signal_code(info),
        sender: if kernel {
            0
        } else {
            (bpf_get_current_pid_tgid() >> 32) as u32
        },
        uid: if kernel {
            0
        } else {
            bpf_get_current_uid_gid() as u32
        },
    };
    // A full table forgets the oldest signal by itself.
    let _ = SIGNALS.insert(pid, signal, 0);
    Some(())
}
