//! GPUs and who is on them.

use std::collections::HashMap;
use std::fmt::Write;

use aegis_common::id::JobId;
use aegis_common::policy::Tier;
use aegis_common::reason::{bytes, permille};
use aegis_common::wire::{GpuView, JobView};

use super::super::sanitise::sanitise;
use super::super::style::{Paint, Style};
use super::super::user::Users;

/// Each GPU in a line, then its residents and foreign processes.
pub(in crate::cli) fn render(gpus: &[GpuView], jobs: &[JobView], style: &Style) -> String {
    if gpus.is_empty() {
        return "No GPUs. `aegis doctor` says why.\n".to_owned();
    }
    let by_id: HashMap<JobId, &JobView> = jobs.iter().map(|job| (job.id, job)).collect();
    let mut users = Users::default();
    let mut out = String::new();
    for gpu in gpus {
        let _ = writeln!(out, "{}", head(gpu, style));
        for id in &gpu.residents {
            let _ = writeln!(
                out,
                "  {}",
                resident(*id, gpu, by_id.get(id).copied(), &mut users, style)
            );
        }
        for process in &gpu.foreign {
            let user = process
                .uid
                .map_or("unknown user".to_owned(), |uid| users.name(uid).to_owned());
            let command = process.command.as_deref().unwrap_or("unknown command");
            let _ = writeln!(
                out,
                "  outside AEGIS: process {} {} ({}), {}",
                process.pid,
                sanitise(command),
                sanitise(&user),
                bytes(process.bytes)
            );
        }
    }
    out
}

fn head(gpu: &GpuView, style: &Style) -> String {
    let name = style.paint(
        Paint::Bold,
        &format!("GPU {}  {}", gpu.index, sanitise(&gpu.name)),
    );
    if gpu.lost {
        return format!("{name}  {}", style.paint(Paint::Bad, "does not answer"));
    }
    let used = gpu.used.map_or_else(|| "unknown".to_owned(), bytes);
    format!(
        "{name}  {used} of {} used, {} promised, {} outside AEGIS, {} guard, {} available  {}",
        bytes(gpu.memory),
        bytes(gpu.promised),
        bytes(gpu.unmanaged),
        bytes(gpu.guard),
        style.paint(Paint::Good, &bytes(gpu.available)),
        activity(gpu)
    )
}

fn activity(gpu: &GpuView) -> String {
    let source = match gpu.tier {
        Tier::Gpm => "GPM",
        Tier::Dcgm => "DCGM",
        Tier::Utilisation => "NVML utilisation",
        Tier::None => return "[no telemetry: not shared]".to_owned(),
    };
    let Some(sm) = gpu.sm_active else {
        return format!("[{source}: no valid window]");
    };
    let mut text = format!("[{source}: SM {}", permille(sm));
    for (name, value) in [("occupancy", gpu.sm_occupancy), ("DRAM", gpu.dram_active)] {
        if let Some(value) = value {
            let _ = write!(text, ", {name} {}", permille(value));
        }
    }
    text.push(']');
    text
}

fn resident(
    id: JobId,
    gpu: &GpuView,
    job: Option<&JobView>,
    users: &mut Users,
    style: &Style,
) -> String {
    let Some(job) = job else {
        return format!("job {id}");
    };
    let user = job
        .user
        .clone()
        .unwrap_or_else(|| users.name(job.uid).to_owned());
    let mut text = format!("job {id} {} ({})", sanitise(&job.name), sanitise(&user));
    if let Some(holding) = job.holdings.iter().find(|holding| holding.gpu == gpu.index) {
        let _ = write!(
            text,
            ", {} of a lease of {}",
            bytes(holding.used),
            bytes(holding.lease)
        );
    }
    if let Some(idle) = job.idle.iter().find(|idle| idle.gpu == gpu.index) {
        let sentence = super::idle::sentence(idle, style);
        let _ = write!(text, ", {}", style.paint(Paint::Middling, &sentence));
    }
    text
}
