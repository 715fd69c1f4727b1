//! Licences, sources and bans of all dependencies (cargo-deny, `xtask/deny.toml`).

use anyhow::{Context, Result};

use super::Violation;
use crate::command::{cargo, line};
use crate::workspace::{all_workspaces, root};

/// `cargo deny check licenses bans sources`. Advisories need a database from the network and are
/// looked at only when it can be had.
pub(crate) fn check() -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for (name, directory) in all_workspaces() {
        let mut command = cargo();
        command
            .arg("deny")
            .arg("--manifest-path")
            .arg(directory.join("Cargo.toml"))
            .arg("--config")
            .arg(root().join("xtask/deny.toml"))
            .args([
                "--workspace",
                "--log-level",
                "error",
                "check",
                "--hide-inclusion-graph",
            ])
            .args(["licenses", "bans", "sources"]);
        let status = command
            .status()
            .with_context(|| format!("cannot start `{}`", line(&command)))?;
        if !status.success() {
            found.push(Violation {
                path: None,
                line: 0,
                message: format!("{name} workspace: `{}` failed", line(&command)),
            });
        }
    }
    println!(
        "lint: deny: advisories are not checked: they need the RustSec database from the network"
    );
    Ok(found)
}
