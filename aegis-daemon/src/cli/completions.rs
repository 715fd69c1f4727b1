//! `aegis completions`: completion scripts.

use clap::{Args, Command};
use clap_complete::Shell;
use serde::Serialize;

use super::context::Context;
use super::error::CliError;
use super::exit;

pub(super) const EXAMPLES: &str = "\
Examples:
  aegis completions bash > /usr/share/bash-completion/completions/aegis
  aegis completions fish > ~/.config/fish/completions/aegis.fish
";

/// Options of `completions`.
#[derive(Args)]
pub(super) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// The `--json` document.
#[derive(Serialize)]
struct Document<'a> {
    script: &'a str,
}

/// Prints the script for `command`, the whole command line.
pub(super) fn run(
    args: &CompletionsArgs,
    mut command: Command,
    cx: &mut Context<'_>,
) -> Result<u8, CliError> {
    // Into memory first: the generator panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "aegis", &mut script);
    if cx.out.json {
        let script = String::from_utf8_lossy(&script);
        cx.out.document(&Document { script: &script })?;
    } else {
        cx.out.bytes(&script)?;
    }
    Ok(exit::OK)
}
