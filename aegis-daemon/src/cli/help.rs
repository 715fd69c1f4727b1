//! `aegis help`: help about a verb or the exit codes.

use aegis_common::wire::ErrorCode;
use clap::{Args, Command};

use super::context::Context;
use super::error::{CliError, hinted};
use super::exit;

pub(super) const EXAMPLES: &str = "\
Examples:
  aegis help submit
  aegis help exit-codes
";

/// Options of `help`.
#[derive(Args)]
pub(super) struct HelpArgs {
    /// A verb, or exit-codes.
    #[arg(value_name = "TOPIC")]
    topic: Option<String>,
}

/// Prints help about `command`, the whole command line.
pub(super) fn run(
    args: &HelpArgs,
    mut command: Command,
    cx: &mut Context<'_>,
) -> Result<u8, CliError> {
    command.build();
    let text = match args.topic.as_deref() {
        None => command.render_help(),
        Some("exit-codes") => {
            cx.out.help(exit::TABLE)?;
            return Ok(exit::OK);
        }
        Some(topic) => match command.find_subcommand_mut(topic) {
            Some(verb) => verb.render_help(),
            None => {
                let verbs: Vec<&str> = command
                    .get_subcommands()
                    .map(|verb| verb.get_name())
                    .collect();
                return Err(CliError::Failure(hinted(
                    ErrorCode::BadRequest,
                    format!("no help about {topic:?}"),
                    format!("topics are {}, exit-codes", verbs.join(", ")),
                )));
            }
        },
    };
    let text = if cx.out.style.colour && !cx.out.json {
        text.ansi().to_string()
    } else {
        text.to_string()
    };
    cx.out.help(&text)?;
    Ok(exit::OK)
}
