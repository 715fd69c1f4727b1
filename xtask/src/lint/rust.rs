//! The Rust tools' own checks, in all workspaces. The BPF programs are checked for this machine: their own target
//! needs a compiler that few machines have.

use std::process::Command;

use anyhow::{Context, Result};

use super::Violation;
use crate::command::{cargo, line};
use crate::workspace::{all_workspaces, ebpf_target, shim_target, target};

/// `cargo fmt --check`.
pub(crate) fn fmt() -> Result<Vec<Violation>> {
    each(|_, command| {
        command.args(["fmt", "--all", "--check"]);
    })
}

/// `cargo clippy`, warnings denied.
pub(crate) fn clippy() -> Result<Vec<Violation>> {
    each(|output, command| {
        command
            .args([
                "clippy",
                "--quiet",
                "--workspace",
                "--all-targets",
                "--locked",
                "--target-dir",
            ])
            .arg(output)
            .args(["--", "-D", "warnings"]);
    })
}

/// `cargo doc`, warnings denied.
pub(crate) fn rustdoc() -> Result<Vec<Violation>> {
    each(|output, command| {
        command
            .args([
                "doc",
                "--quiet",
                "--workspace",
                "--no-deps",
                "--document-private-items",
            ])
            .args(["--locked", "--target-dir"])
            .arg(output)
            .env("RUSTDOCFLAGS", "-D warnings");
    })
}

fn each(prepare: impl Fn(&std::path::Path, &mut Command)) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for (name, directory) in all_workspaces() {
        let output = match name {
            "shim" => shim_target(),
            "ebpf" => ebpf_target(),
            _ => target(),
        };
        let mut command = cargo();
        command.current_dir(directory);
        prepare(&output, &mut command);
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
    Ok(found)
}
