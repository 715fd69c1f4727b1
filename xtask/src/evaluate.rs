//! `cargo xtask evaluate`: builds the evaluation optimised and runs it.

use anyhow::Result;
use clap::Args;

use crate::command::{cargo, run as run_command};
use crate::workspace::root;

/// Options of `evaluate`.
#[derive(Args)]
pub(crate) struct Options {
    /// What the evaluation is told; `cargo xtask evaluate -- --help` lists it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// `cargo xtask evaluate`.
///
/// # Errors
/// It did not build or did not run.
pub(crate) fn run(options: &Options) -> Result<()> {
    eprintln!("evaluate: building it optimised");
    run_command(
        cargo()
            .current_dir(root())
            .args(["run", "--quiet", "--locked", "--release"])
            .args(["--package", "aegis-evaluate", "--"])
            .args(&options.arguments),
    )
}
