//! `cargo xtask compat`: installs pinned client software, builds what it runs under, and shows the
//! table of clients.

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::artifacts::{self, Profile};
use crate::command::{cargo, run as run_command};
use crate::setup;
use crate::setup::python::{CLIENTS, install_requirements};
use crate::workspace::{root, target};

/// numba-cuda with NVIDIA's compilers.
const NUMBA: &str = "tests/compat/clients/requirements-numba.txt";

/// Options of `compat`.
#[derive(Args)]
pub(crate) struct Options {
    /// Print one JSON document on standard output
    #[arg(long)]
    json: bool,
    /// Only clients whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

/// `cargo xtask compat`.
///
/// # Errors
/// Something did not build, or a client failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    setup::prepare(setup::Verb::Compat, true)?;
    for file in [CLIENTS, NUMBA] {
        // Without it the rest still runs; the table says what is skipped.
        if let Err(error) = install_requirements(file) {
            eprintln!("compat: {error:#}; the clients of {file} are skipped");
        }
    }
    eprintln!("compat: building");
    artifacts::build_all(Profile::Debug)?;
    artifacts::runtime::build(Profile::Debug)?;
    run_command(cargo().current_dir(root()).args([
        "build",
        "--quiet",
        "--locked",
        "--package",
        "compat",
        "--bins",
    ]))?;
    let mut command = Command::new(
        target()
            .join(Profile::Debug.directory())
            .join("aegis-compat"),
    );
    if options.json {
        command.arg("--json");
    }
    if let Some(only) = &options.only {
        command.arg("--only").arg(only);
    }
    run_command(&mut command)
}
