//! `aegis doctor`: the daemon about itself.

use aegis_common::wire::{Check, CheckState, DaemonView, Response};

use crate::owner::Owner;

/// The daemon's checks.
pub(crate) fn handle(owner: &mut Owner) -> Response {
    let mut checks = vec![mode(owner), journal(owner), shim(owner)];
    checks.extend(owner.telemetry_checks());
    Response::Doctor(DaemonView {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        rootless: owner.settings().rootless,
        checks,
    })
}

fn mode(owner: &Owner) -> Check {
    if owner.settings().rootless {
        Check {
            name: "mode".to_owned(),
            state: CheckState::Degraded,
            detail: format!(
                "rootless: serves uid {} only; ledgers of one user protect against accidents, not malice",
                owner.settings().uid
            ),
            hint: Some("run aegisd as root to share the machine between users".to_owned()),
        }
    } else {
        ok("mode", "root: each job runs as its submitter")
    }
}

fn journal(owner: &Owner) -> Check {
    match owner.journal_trouble() {
        None => ok("journal", "written"),
        Some(error) => Check {
            name: "journal".to_owned(),
            state: CheckState::Failed,
            detail: error,
            hint: Some(
                "free disk space in the state directory; nothing starts until then".to_owned(),
            ),
        },
    }
}

fn shim(owner: &Owner) -> Check {
    let path = &owner.settings().shim_library;
    if path.is_file() {
        return ok("shim", &path.display().to_string());
    }
    Check {
        name: "shim".to_owned(),
        state: CheckState::Failed,
        detail: format!(
            "{} is missing: jobs run uninstrumented and never share a GPU",
            path.display()
        ),
        hint: Some("install libaegis_shim.so there, or set shim.library".to_owned()),
    }
}

fn ok(name: &str, detail: &str) -> Check {
    Check {
        name: name.to_owned(),
        state: CheckState::Ok,
        detail: detail.to_owned(),
        hint: None,
    }
}
