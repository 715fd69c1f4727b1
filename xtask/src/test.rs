//! `cargo xtask test`: build everything, run every test, end with the counts.

mod count;

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::artifacts::{self, Profile};
use crate::command::cargo;
use crate::setup;
use crate::workspace::{root, shim_target, target, workspaces};
use count::Counts;

/// Options of `test`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only tests whose name contains this (as `cargo nextest run NAME`)
    filter: Vec<String>,
    /// Only the packages of this name
    #[arg(short, long)]
    package: Vec<String>,
}

/// `cargo xtask test`.
///
/// # Errors
/// Something did not build or a test failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    setup::prepare(setup::Verb::Test, true)?;
    println!("test: building the shim, the daemon, the simulated driver and the workloads");
    artifacts::build_all(Profile::Debug)?;
    let mut total = Counts::default();
    for (name, directory) in workspaces() {
        let output = if name == "shim" {
            shim_target()
        } else {
            target()
        };
        total += nextest(name, &directory, &output, options)?;
        // nextest runs no documentation tests; a filter by name means none of them.
        if options.filter.is_empty() && options.package.is_empty() {
            total += doctests(name, &directory, &output)?;
        }
    }
    for (test, reason) in &total.skips {
        println!("test: skipped {test}: {reason}");
    }
    println!("{total}");
    if total.failed > 0 {
        bail!("{} tests failed", total.failed);
    }
    Ok(())
}

fn nextest(name: &str, directory: &Path, output: &Path, options: &Options) -> Result<Counts> {
    println!("test: running the tests of the {name} workspace");
    let junit = output.join("nextest/default/junit.xml");
    if junit.exists() {
        std::fs::remove_file(&junit)
            .with_context(|| format!("cannot remove {}", junit.display()))?;
    }
    let mut command = cargo();
    command
        .current_dir(directory)
        .args([
            "nextest",
            "run",
            "--locked",
            "--no-tests",
            "pass",
            "--target-dir",
        ])
        .arg(output)
        .arg("--config-file")
        .arg(root().join("xtask/nextest.toml"));
    if name != "shim" {
        let groups = root().join("xtask/nextest-e2e.toml");
        command
            .arg("--tool-config-file")
            .arg(format!("aegis:{}", groups.display()));
    }
    if options.package.is_empty() {
        command.arg("--workspace");
    }
    for package in &options.package {
        command.args(["--package", package]);
    }
    command.args(&options.filter);
    let status = command.status().context("cannot start cargo nextest")?;
    let report = std::fs::read_to_string(&junit).ok();
    let counts = report.as_deref().map(count::junit).unwrap_or_default();
    // 100 = tests failed, which the report says better. Anything else means that none ran.
    if !status.success() && counts.failed == 0 {
        bail!("cargo nextest ended with {status} in the {name} workspace");
    }
    Ok(counts)
}

fn doctests(name: &str, directory: &Path, output: &Path) -> Result<Counts> {
    println!("test: running the documentation tests of the {name} workspace");
    let mut command = cargo();
    command
        .current_dir(directory)
        .args([
            "test",
            "--quiet",
            "--doc",
            "--workspace",
            "--locked",
            "--no-fail-fast",
        ])
        .arg("--target-dir")
        .arg(output)
        .stderr(std::process::Stdio::inherit());
    let result = command.output().context("cannot start cargo test")?;
    let text = String::from_utf8_lossy(&result.stdout);
    let counts = count::libtest(&text);
    if !result.status.success() {
        print!("{text}");
        if counts.failed == 0 {
            bail!(
                "cargo test --doc ended with {} in the {name} workspace",
                result.status
            );
        }
    }
    Ok(counts)
}
