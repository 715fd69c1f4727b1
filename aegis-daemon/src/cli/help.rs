//! `aegis help`: help about a verb or the exit codes.

use std::io;

use aegis_common::wire::ErrorCode;
use clap::{Args, CommandFactory};
use serde::Serialize;

use super::error::{CliError, hinted};
use super::out::Out;
use super::{Context, args, exit};

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

/// Prints help.
pub(super) fn run(args: &HelpArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let mut command = args::Args::command();
    command.build();
    let text = match args.topic.as_deref() {
        None => command.render_help(),
        Some("exit-codes") => {
            show(cx.out, exit::TABLE)?;
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
    show(cx.out, &text)?;
    Ok(exit::OK)
}

/// The `--json` document.
#[derive(Serialize)]
struct Document<'a> {
    help: &'a str,
}

/// Help, as text or in a document: `--json` promises one whatever is asked.
pub(super) fn show(out: &mut Out, text: &str) -> io::Result<()> {
    if out.json {
        out.document(&Document { help: text })
    } else {
        out.text(text)
    }
}
