//! Errors: what they are, how they look, what they exit with.

use std::io;

use aegis_common::wire::{ErrorCode, Failure};
use clap::error::ErrorKind;
use serde::Serialize;

use super::exit;
use super::out::Out;
use super::sanitise::{sanitise, sanitise_lines};

/// Why a verb could not do its work.
#[derive(Debug)]
pub(super) enum CliError {
    /// A mistake or an obstacle, from the daemon or found here.
    Failure(Failure),
    /// Standard output is gone or full.
    Output(io::Error),
}

impl From<Failure> for CliError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// The document of an error under `--json`.
#[derive(Serialize)]
struct ErrorDocument<'a> {
    error: &'a Failure,
}

/// A failure found on this side.
pub(super) fn failure(code: ErrorCode, message: impl Into<String>) -> Failure {
    Failure {
        code,
        message: message.into(),
        hint: None,
        job: None,
    }
}

/// A failure found on this side, with the way out.
pub(super) fn hinted(
    code: ErrorCode,
    message: impl Into<String>,
    hint: impl Into<String>,
) -> Failure {
    Failure {
        hint: Some(hint.into()),
        ..failure(code, message)
    }
}

/// An answer that does not belong to the question.
pub(super) fn unexpected(what: &str) -> CliError {
    CliError::Failure(failure(
        ErrorCode::Internal,
        format!("the daemon's answer to {what} is of another kind"),
    ))
}

/// Shows the error, if there is one; the exit code.
pub(super) fn report(result: Result<u8, CliError>, out: &mut Out) -> u8 {
    match result {
        Ok(code) => code,
        Err(CliError::Failure(failure)) => show(&failure, out),
        Err(CliError::Output(error)) => output_failed(&error),
    }
}

fn show(failure: &Failure, out: &mut Out) -> u8 {
    if out.json {
        if let Err(error) = out.document(&ErrorDocument { error: failure }) {
            return output_failed(&error);
        }
    } else {
        tell(failure);
    }
    failure.code.exit_code()
}

/// The failure in words, on standard error.
pub(super) fn tell(failure: &Failure) {
    let mut text = format!("aegis: {}", sanitise(&failure.message));
    if let Some(hint) = &failure.hint {
        text.push_str(&format!("\n  hint: {}", sanitise(hint)));
    }
    warn(&text);
}

/// A line on standard error. Nobody can be told if that fails.
pub(super) fn warn(text: &str) {
    use io::Write;
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// A reader that has gone away (`| head`) is no error.
fn output_failed(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return exit::OK;
    }
    warn(&format!("aegis: cannot write the output: {error}"));
    exit::OUTPUT
}

/// Shows what clap has to say: help and version, or what is wrong with the arguments.
pub(super) fn usage(error: &clap::Error, out: &mut Out) -> u8 {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        let help = error.render();
        let text = if out.style.colour && !out.json {
            help.ansi().to_string()
        } else {
            help.to_string()
        };
        return match out.help(&text) {
            Ok(()) => exit::OK,
            Err(error) => output_failed(&error),
        };
    }
    // Clap quotes the arguments: they may contain anything.
    let text = sanitise_lines(&error.render().to_string());
    let text = text.trim_end();
    if out.json {
        let message = text.strip_prefix("error: ").unwrap_or(text);
        let (message, rest) = message.split_once("\n\n").unwrap_or((message, ""));
        let failure = Failure {
            hint: (!rest.is_empty()).then(|| rest.trim().to_owned()),
            ..failure(ErrorCode::BadRequest, message.trim())
        };
        return show(&failure, out);
    }
    warn(text);
    ErrorCode::BadRequest.exit_code()
}
