//! `aegis doctor`: the daemon about itself.

use aegis_common::wire::{Check, CheckState, DaemonView, Response};

use crate::owner::{Owner, Reply};

/// The daemon's checks. NVML's calls block, so that part is answered by a thread of its own.
pub(crate) fn handle(owner: &Owner, reply: Reply) {
    let mut checks = vec![mode(owner), journal(owner), shim(owner), processes(owner)];
    if let Some(error) = owner.telemetry_error() {
        let hint = "nothing is placed next to a running job until it works";
        checks.push(failed("telemetry", error, hint));
    }
    let rootless = owner.settings().rootless;
    let library = owner.settings().nvml_library.clone();
    tokio::task::spawn_blocking(move || {
        checks.extend(crate::telemetry::checks(library.as_deref()));
        let view = DaemonView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            rootless,
            checks,
        };
        // A client that hung up does not need its answer.
        let _ = reply.send(Response::Doctor(view));
    });
}

fn mode(owner: &Owner) -> Check {
    let settings = owner.settings();
    if !settings.rootless {
        return ok("mode", "root: each job runs as its submitter");
    }
    Check {
        name: "mode".to_owned(),
        state: CheckState::Degraded,
        detail: format!(
            "rootless: serves uid {} only; lease pages protect against accidents, not malice",
            settings.uid
        ),
        hint: Some("run aegisd as root to share the machine between users".to_owned()),
    }
}

fn journal(owner: &Owner) -> Check {
    match owner.journal_trouble() {
        None => ok("journal", "written"),
        Some(error) => failed(
            "journal",
            &error,
            "free disk space in the state directory; nothing starts until then",
        ),
    }
}

fn shim(owner: &Owner) -> Check {
    let hint = "install libaegis_shim.so, or set shim.library";
    let without = "jobs run uninstrumented and never share a GPU";
    match &owner.settings().shim_library {
        Some(path) if path.is_file() => ok("shim", &path.display().to_string()),
        Some(path) => {
            let detail = format!("{} is missing: {without}", path.display());
            failed("shim", &detail, hint)
        }
        None => failed("shim", &format!("not found: {without}"), hint),
    }
}

/// Pidfds and `/proc` do without it, so it never fails.
fn processes(owner: &Owner) -> Check {
    const NAME: &str = "process events";
    match owner.lifecycle_state() {
        Ok(lost) => ok(NAME, &format!("BPF, {lost} events lost")),
        Err((why, hint)) => Check {
            name: NAME.to_owned(),
            state: CheckState::Degraded,
            detail: format!(
                "{why}: a process that leaves its job's tree and clears its environment is lost \
                 if its keeper is killed"
            ),
            hint: Some(hint.to_owned()),
        },
    }
}

fn failed(name: &str, detail: &str, hint: &str) -> Check {
    Check {
        name: name.to_owned(),
        state: CheckState::Failed,
        detail: detail.to_owned(),
        hint: Some(hint.to_owned()),
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
