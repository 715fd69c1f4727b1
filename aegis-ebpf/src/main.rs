//! BPF programs that follow the processes of jobs from fork to exit.
//!
//! ```text
//!   sched_process_fork ----+
//!   sched_process_exec ----+--> FOLLOWED?  --yes--> EVENTS (ring buffer) --> aegisd
//!   sched_process_exit ----+        |                  | full
//!   signal_generate --> SIGNALS     no: nothing        v
//!   mark_victim ------> VICTIMS                     DROPPED (counter)
//! ```
//!
//! The daemon puts the first process of a job into `FOLLOWED`; from then on the kernel keeps the set
//! itself: children are added when they are forked and removed when they end, whether or not the
//! daemon hears of it. So the set is exact even after events were lost, and processes of nobody's
//! job cost one failed lookup.
//!
//! Raw tracepoints give the kernel's own arguments, the same on every kernel since 4.17; where
//! fields lie inside them the daemon finds in the running kernel's type information at load.
#![no_std]
#![no_main]

mod hooks;
mod maps;
mod sys;

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // The verifier rejects a program that can get here.
    loop {}
}
