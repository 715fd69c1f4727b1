//! GPUs that a running job keeps without using them.

use aegis_common::wire::{IdleGpu, JobView};

use super::super::style::Style;
use super::job::gpu_list;
use super::time;

/// `GPU 1 idle for 12m05s`; empty if none is.
pub(in crate::cli) fn short(job: &JobView, style: &Style) -> String {
    let gpus: Vec<_> = job.idle.iter().map(|idle| idle.gpu).collect();
    match job.idle.iter().map(|idle| idle.since).min() {
        None => String::new(),
        Some(since) => {
            let span = time::span(style.now.millis_since(since));
            format!("GPU {} idle for {span}", gpu_list(&gpus))
        }
    }
}

/// Why one counts as idle, and since when.
pub(in crate::cli) fn sentence(idle: &IdleGpu, style: &Style) -> String {
    let span = time::span(style.now.millis_since(idle.since));
    if idle.dormant {
        format!("idle: nothing was launched for {span}")
    } else {
        format!("idle: no memory held there for {span}")
    }
}
