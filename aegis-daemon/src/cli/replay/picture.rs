//! `--plot`: the time lines as a file.

use std::path::Path;

use aegis_common::wire::{ErrorCode, Failure};

use super::super::error::{hinted, warn};
use super::super::sanitise::sanitise;
use crate::replay::plot::timeline;
use crate::replay::{Case, MachineConfig, Outcome, parallel};

/// Replays the case once more, keeping what the GPUs do, and writes the picture.
pub(super) fn draw(
    path: &Path,
    name: &str,
    case: &Case,
    policies: &[&'static str],
) -> Result<(), Failure> {
    let case = Case {
        machine: MachineConfig {
            keep_series: true,
            ..case.machine.clone()
        },
        ..case.clone()
    };
    let outcomes = parallel(policies, |policy| case.replay(policy), |_| ());
    let lanes: Vec<(&str, &Outcome)> = policies.iter().copied().zip(&outcomes).collect();
    let title = format!(
        "{name}, seed {}: {} jobs on {} GPUs of {} GiB",
        case.seed,
        case.trace.jobs.len(),
        case.machine.gpus,
        case.machine.gpu_memory >> 30
    );
    std::fs::write(path, timeline(&title, &case, &lanes)).map_err(|error| {
        hinted(
            ErrorCode::BadRequest,
            format!("cannot write {}: {error}", path.display()),
            "name a file in a directory that exists and that you may write to",
        )
    })?;
    let shown = path.display().to_string();
    warn(&format!(
        "aegis: the time lines are in {}",
        sanitise(&shown)
    ));
    Ok(())
}
