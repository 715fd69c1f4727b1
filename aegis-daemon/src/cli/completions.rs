//! `aegis completions`: completion scripts.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::error::CliError;
use super::{Context, args, exit};

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

/// Prints the script.
pub(super) fn run(args: &CompletionsArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    // Into memory first: the generator panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::Args::command(), "aegis", &mut script);
    cx.out.bytes(&script)?;
    Ok(exit::OK)
}
