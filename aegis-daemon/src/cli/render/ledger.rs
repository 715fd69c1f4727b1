//! What processes hold on GPUs, by their shared memory.

use std::fmt::Write;

use aegis_common::reason::bytes;
use aegis_common::wire::{Inspection, LedgerGpu, LedgerView};

use super::super::sanitise::sanitise;
use super::super::style::{Paint, Style};
use super::time;

/// Each process with its GPUs.
pub(in crate::cli) fn render(inspection: &Inspection, style: &Style) -> String {
    let mut out = String::new();
    if !inspection.daemon {
        let text = "aegisd is not running: read from shared memory without it";
        let _ = writeln!(out, "{}", style.paint(Paint::Middling, text));
    }
    if inspection.processes.is_empty() {
        out.push_str(if inspection.daemon {
            "No process with the shim has called CUDA.\n"
        } else {
            "No shared memory of the shim that you may read: either no process has called CUDA, or\n\
             it is held by another user's daemon (root may read all of it).\n"
        });
    }
    for process in &inspection.processes {
        out.push_str(&one(process, style));
    }
    out
}

fn one(process: &LedgerView, style: &Style) -> String {
    let mut out = String::new();
    let job = process
        .job
        .map_or_else(String::new, |job| format!("job {job}, "));
    let command = process.command.as_deref().unwrap_or("unknown command");
    let head = format!("{job}process {} {}", process.process.pid, sanitise(command));
    let _ = write!(out, "{}", style.paint(Paint::Bold, &head));
    if !process.alive {
        out.push_str(" (ended)");
    }
    out.push('\n');
    let _ = writeln!(
        out,
        "  launches   {} kernels, {} graphs, {} copies, {} memsets; {}",
        process.kernels,
        process.graphs,
        process.copies,
        process.memsets,
        activity(process)
    );
    if let Some(pace) = &process.pace {
        let _ = writeln!(out, "  sequence   {}", super::slowdown::pace(pace));
    }
    if process.captures_open > 0 {
        let _ = writeln!(out, "  captures   {} open", process.captures_open);
    }
    for gpu in &process.gpus {
        out.push_str(&account(gpu));
    }
    let bypasses: Vec<String> = process
        .bypasses
        .iter()
        .map(|(reason, count)| format!("{} {count}", sanitise(reason)))
        .collect();
    if !bypasses.is_empty() {
        let _ = writeln!(out, "  passed on  {}", bypasses.join(", "));
    }
    if process.unknown_lookups > 0 {
        let _ = writeln!(
            out,
            "  unknown    {} looked-up names",
            process.unknown_lookups
        );
    }
    if let Some(warning) = &process.warning {
        let _ = writeln!(
            out,
            "  {}",
            style.paint(Paint::Bad, &format!("warning: {}", sanitise(warning)))
        );
    }
    out
}

fn activity(process: &LedgerView) -> String {
    match (process.launched, process.idle_ms) {
        (false, _) => "nothing launched yet".to_owned(),
        (true, Some(idle)) => format!("last activity {} ago", time::span(idle)),
        (true, None) => "last activity unknown".to_owned(),
    }
}

fn account(gpu: &LedgerGpu) -> String {
    let name = gpu
        .gpu
        .map_or_else(|| sanitise(&gpu.uuid), |index| format!("GPU {index}"));
    let limit = gpu.limit.map_or_else(|| "unknown".to_owned(), bytes);
    let mut out = format!(
        "  {name:<10} {} used, peak {}, limit {limit}",
        bytes(gpu.used),
        bytes(gpu.peak)
    );
    if let Some(nvml) = gpu.nvml {
        let _ = write!(out, ", {} by NVML", bytes(nvml));
    }
    if gpu.inflight > 0 {
        let _ = write!(out, ", {} being allocated", bytes(gpu.inflight));
    }
    out.push('\n');
    let kinds: Vec<String> = gpu
        .kinds
        .iter()
        .map(|kind| format!("{} {}", sanitise(&kind.kind), bytes(kind.bytes)))
        .collect();
    if !kinds.is_empty() {
        let _ = writeln!(out, "             by kind: {}", kinds.join(", "));
    }
    let _ = writeln!(
        out,
        "             {} allocations, {} frees, {} refused by AEGIS in {} episodes, {} by the driver",
        gpu.allocs, gpu.frees, gpu.denials, gpu.episodes, gpu.driver_ooms
    );
    out
}
