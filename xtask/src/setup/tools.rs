//! Compilers and cargo's helper programs.

use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use super::{Step, Verb};
use crate::command::{self, capture, cargo};
use crate::versions::{DENY, NEXTEST, RUST};

/// Toolchain, C compiler, binutils, cargo-nextest, cargo-deny, musl-gcc.
pub(crate) fn steps() -> Vec<Step> {
    vec![
        Step {
            name: "rustc",
            required_by: &[
                Verb::Test,
                Verb::Lint,
                Verb::Demo,
                Verb::Bench,
                Verb::Compat,
                Verb::Install,
            ],
            used_by: &[],
            check: rustc,
            install: || bail!("a toolchain is not installed by this command"),
            by_hand: "rustup toolchain install 1.95 --component rustfmt,clippy",
        },
        Step {
            name: "C compiler",
            required_by: &[
                Verb::Test,
                Verb::Lint,
                Verb::Demo,
                Verb::Bench,
                Verb::Compat,
                Verb::Install,
            ],
            used_by: &[],
            check: || version_line("cc", "--version"),
            install: || apt(&["gcc"]),
            by_hand: "apt-get install gcc libc6-dev",
        },
        Step {
            name: "readelf",
            required_by: &[Verb::Lint],
            used_by: &[],
            check: || version_line("readelf", "--version"),
            install: || apt(&["binutils"]),
            by_hand: "apt-get install binutils",
        },
        Step {
            name: "cargo-nextest",
            required_by: &[Verb::Test],
            used_by: &[],
            check: || at_least(&["nextest", "--version"], NEXTEST),
            install: || install("cargo-nextest", NEXTEST),
            by_hand: "cargo install --locked cargo-nextest --version 0.9.143",
        },
        Step {
            name: "cargo-deny",
            required_by: &[Verb::Lint],
            used_by: &[],
            check: || at_least(&["deny", "--version"], DENY),
            install: || install("cargo-deny", DENY),
            by_hand: "cargo install --locked cargo-deny --version 0.20.2",
        },
        Step {
            name: "musl-gcc",
            required_by: &[],
            used_by: &[Verb::Test],
            check: || version_line("musl-gcc", "--version"),
            install: || apt(&["musl-tools"]),
            by_hand: "apt-get install musl-tools (without it the musl transparency test is skipped)",
        },
    ]
}

fn rustc() -> Result<String> {
    let text = capture(Command::new("rustc").arg("--version"))?;
    let version = numbers(&text).ok_or_else(|| anyhow!("cannot read `{}`", text.trim()))?;
    if (version[0], version[1]) < RUST {
        bail!("{} is older than {}.{}", text.trim(), RUST.0, RUST.1);
    }
    Ok(text.trim().trim_start_matches("rustc ").to_owned())
}

fn at_least(arguments: &[&str], wanted: &str) -> Result<String> {
    let text = capture(cargo().args(arguments))?;
    let found = numbers(&text).ok_or_else(|| anyhow!("cannot read `{}`", text.trim()))?;
    if Some(found) < numbers(wanted) {
        bail!(
            "{}.{}.{} is older than {wanted}",
            found[0],
            found[1],
            found[2]
        );
    }
    Ok(format!("{}.{}.{}", found[0], found[1], found[2]))
}

/// The first `major.minor.patch` in a text.
fn numbers(text: &str) -> Option<[u32; 3]> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.'))
        .find_map(|word| {
            let mut parts = word.split('.').map(str::parse::<u32>);
            match (parts.next(), parts.next(), parts.next(), parts.next()) {
                (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) => {
                    Some([major, minor, patch])
                }
                _ => None,
            }
        })
}

fn version_line(program: &str, argument: &str) -> Result<String> {
    if !command::exists(program) {
        bail!("`{program}` is not on PATH");
    }
    // musl-gcc forwards to gcc; either way the first line names the compiler.
    let text = capture(Command::new(program).arg(argument))?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

fn install(package: &str, version: &str) -> Result<()> {
    command::run(cargo().args(["install", "--locked", package, "--version", version]))
        .context("is the crates.io registry reachable?")
}

/// Installs Debian packages.
///
/// # Errors
/// Not root, no apt, or no such package.
pub(crate) fn apt(packages: &[&str]) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("not root, so no system package is installed");
    }
    if !command::exists("apt-get") {
        bail!("no apt-get here");
    }
    let install = || {
        command::run(
            Command::new("apt-get")
                .args(["install", "--yes", "--no-install-recommends"])
                .args(packages)
                .env("DEBIAN_FRONTEND", "noninteractive")
                .stdout(std::process::Stdio::null()),
        )
    };
    // Package lists may be missing (fresh container) or current: update only when it matters.
    install().or_else(|_| {
        command::run(Command::new("apt-get").args(["update", "--quiet"]))?;
        install()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_and_compared_as_numbers() {
        assert_eq!(
            numbers("cargo-nextest 0.9.143 (60fa 2026-08-04)"),
            Some([0, 9, 143])
        );
        assert_eq!(numbers("rustc 1.95.0-nightly"), Some([1, 95, 0]));
        assert_eq!(numbers("none here 1.2"), None);
        assert!(numbers("0.9.99") < numbers("0.9.143"));
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = version_line("no-such-program-7", "--version").unwrap_err();
        assert!(error.to_string().contains("no-such-program-7"));
    }
}
