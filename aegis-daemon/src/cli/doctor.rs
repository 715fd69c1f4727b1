//! `aegis doctor`: check this machine and the daemon.

use std::fmt::Write;

use aegis_common::wire::{Check, CheckState, DaemonView, ErrorCode, Failure, Request, Response};
use clap::Args;
use serde::Serialize;

use super::context::Context;
use super::error::{CliError, unexpected};
use super::sanitise::{sanitise, sanitise_lines};
use super::style::{Paint, Style};
use super::{exit, local_checks};

pub(super) const EXAMPLES: &str = "\
Checks what the daemon finds (GPUs, telemetry, shared memory) and what can be seen from here \
(socket, configuration, shim, CUDA driver). Exits with 0 if nothing failed, 69 if the daemon cannot \
be reached, else 1.

CUDA error 103, cudaErrorSoftwareValidityNotEstablished (\"integrity checks failed\"): NVIDIA's \
CUDA runtime checks the driver below it and found none of NVIDIA's. The shim neither causes nor \
cures it: it passes that check through untouched. It appears on a simulated or damaged driver; \
reinstall NVIDIA's.
To see whether the shim plays any part in a problem, run the program with AEGIS_SHIM_DISABLE=1.

Examples:
  aegis doctor
  aegis doctor --json | jq '.local[], .daemon.checks[] | select(.state != \"ok\")'
";

/// Options of `doctor`.
#[derive(Args)]
pub(super) struct DoctorArgs {}

/// The `--json` document.
#[derive(Serialize)]
struct Document {
    /// The daemon's checks; null if it cannot be reached.
    daemon: Option<DaemonView>,
    /// The checks made here.
    local: Vec<Check>,
}

/// Checks.
pub(super) fn run(_: &DoctorArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let answer = match cx.connect().and_then(|mut client| {
        let version = client.version.clone();
        Ok((version, client.ask(&Request::Doctor)?))
    }) {
        Ok((_, Response::Doctor(view))) => Ok(view),
        Ok(_) => return Err(unexpected("doctor")),
        Err(CliError::Failure(failure)) => Err(failure),
        Err(other) => return Err(other),
    };
    let mut local = vec![reachable(&answer)];
    local.extend(local_checks::all(answer.is_ok()));
    let document = Document {
        daemon: answer.as_ref().ok().cloned(),
        local,
    };
    let failed = document
        .daemon
        .iter()
        .flat_map(|daemon| &daemon.checks)
        .chain(&document.local)
        .any(|check| check.state == CheckState::Failed);
    let code = match answer {
        Err(failure) => failure.code.exit_code(),
        Ok(_) if failed => exit::SOME_FAILED,
        Ok(_) => exit::OK,
    };
    if cx.out.json {
        cx.out.document(&document)?;
    } else {
        let text = render(&document, &cx.out.style);
        cx.out.text(&text)?;
    }
    Ok(code)
}

fn reachable(answer: &Result<DaemonView, Failure>) -> Check {
    let (state, detail, hint) = match answer {
        Ok(daemon) => (
            CheckState::Ok,
            format!(
                "aegisd {}, process {}, {}",
                daemon.version,
                daemon.pid,
                if daemon.rootless {
                    "rootless: one user"
                } else {
                    "root: all users"
                }
            ),
            None,
        ),
        Err(failure) if failure.code == ErrorCode::Unreachable => (
            CheckState::Failed,
            failure.message.clone(),
            failure.hint.clone(),
        ),
        Err(failure) => (
            CheckState::Failed,
            format!("refuses: {}", failure.message),
            failure.hint.clone(),
        ),
    };
    Check {
        name: "daemon".to_owned(),
        state,
        detail,
        hint,
    }
}

fn render(document: &Document, style: &Style) -> String {
    let mut out = String::new();
    let remote = document.daemon.iter().flat_map(|daemon| &daemon.checks);
    for check in document.local.iter().chain(remote) {
        let (word, paint) = match check.state {
            CheckState::Ok => ("ok      ", Paint::Good),
            CheckState::Degraded => ("degraded", Paint::Middling),
            CheckState::Failed => ("FAILED  ", Paint::Bad),
        };
        let detail = sanitise_lines(&check.detail).replace('\n', "\n            ");
        let _ = writeln!(
            out,
            "{}  {}: {detail}",
            style.paint(paint, word),
            sanitise(&check.name)
        );
        if let (Some(hint), true) = (&check.hint, check.state != CheckState::Ok) {
            let _ = writeln!(out, "          {}", sanitise(hint));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::error::hinted;
    use super::super::style::tests::plain;
    use super::*;

    #[test]
    fn a_dead_daemon_is_a_finding_and_escapes_are_harmless() {
        let dead = Err(hinted(ErrorCode::Unreachable, "nobody\x1b[2J", "start it"));
        let document = Document {
            local: vec![reachable(&dead)],
            daemon: None,
        };
        assert_eq!(
            render(&document, &plain()),
            "FAILED    daemon: nobody\\x1b[2J\n          start it\n"
        );
    }
}
