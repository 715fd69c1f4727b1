//! The command line `aegis`: one file per verb.
//!
//! ```text
//!   args (clap) -> verb -> client --wire--> aegisd
//!                   |
//!                   +-> render (pure: view in, text out) -> out (stdout; JSON or text)
//! ```
//!
//! With `--json` exactly one document goes to standard output, errors included; everything else goes
//! to standard error. Text from users, jobs and other programs passes `render`'s sanitiser
//! before it reaches a terminal, with one documented exception: `aegis log`.

mod args;
mod cancel;
mod client;
mod completions;
mod context;
mod doctor;
mod error;
mod exit;
mod explain;
mod follow;
mod frame;
mod gpus;
mod help;
mod history;
mod inspect;
mod job_id;
mod launch;
mod local_checks;
mod log;
mod log_file;
mod out;
mod printer;
mod program;
mod queue;
mod render;
mod replay;
mod sanitise;
mod socket;
mod status;
mod style;
mod submit;
#[cfg(test)]
mod testing;
mod user;
mod wait;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Verb};
use context::Context;
use error::CliError;
use out::Out;

/// Runs `aegis` with these arguments (the program's name first).
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let mut out = Out::stdout(wants_json(&args));
    let code = match Args::try_parse_from(&args) {
        Ok(args) => {
            out.json = args.json;
            let result = dispatch(args, &mut out);
            error::report(result, &mut out)
        }
        Err(error) => error::usage(&error, &mut out),
    };
    ExitCode::from(code)
}

/// Does what the verb says; the exit code.
fn dispatch(args: Args, out: &mut Out) -> Result<u8, CliError> {
    let mut cx = Context {
        socket: args.socket,
        out,
    };
    match args.verb {
        Verb::Submit(verb) => submit::run(verb, &mut cx),
        Verb::Queue(verb) => queue::run(&verb, &mut cx),
        Verb::Status(verb) => status::run(&verb, &mut cx),
        Verb::Explain(verb) => explain::run(&verb, &mut cx),
        Verb::Log(verb) => log::run(&verb, &mut cx),
        Verb::Wait(verb) => wait::run(&verb, &mut cx),
        Verb::Cancel(verb) => cancel::run(&verb, &mut cx),
        Verb::Gpus(verb) => gpus::run(&verb, &mut cx),
        Verb::Inspect(verb) => inspect::run(&verb, &mut cx),
        Verb::History(verb) => history::run(&verb, &mut cx),
        Verb::Replay(verb) => replay::run(&verb, &mut cx),
        Verb::Doctor(verb) => doctor::run(&verb, &mut cx),
        Verb::Completions(verb) => completions::run(&verb, Args::command(), &mut cx),
        Verb::Help(verb) => help::run(&verb, Args::command(), &mut cx),
    }
}

/// Whether errors in the arguments themselves must be JSON.
fn wants_json(args: &[OsString]) -> bool {
    args.iter()
        .take_while(|arg| *arg != "--")
        .any(|arg| arg == "--json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submitted(line: &str) -> (bool, Vec<OsString>) {
        let args = Args::try_parse_from(line.split(' ')).unwrap();
        let Verb::Submit(verb) = args.verb else {
            panic!("{line}")
        };
        (args.json, verb.command)
    }

    #[test]
    fn what_follows_the_command_is_the_commands() {
        for (line, json, command) in [
            ("aegis submit -- a --json -- b", false, "a --json -- b"),
            ("aegis submit a --json -- b", false, "a --json -- b"),
            ("aegis submit --json a --gpus 2", true, "a --gpus 2"),
            ("aegis submit --gpus 2 -- --odd -x", false, "--odd -x"),
            ("aegis submit -- -- b", false, "-- b"),
            ("aegis --json submit a -h --version", true, "a -h --version"),
        ] {
            let command: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            assert_eq!(submitted(line), (json, command), "{line}");
        }
    }

    #[test]
    fn the_options_are_consistent() {
        Args::command().debug_assert();
    }
}
