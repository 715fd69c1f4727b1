//! `aegis history`: what earlier runs taught, and forgetting it.

use aegis_common::wire::{HistoryEntry, HistoryFilter, Request, Response};
use clap::{Args, Subcommand};
use serde::Serialize;

use super::context::Context;
use super::error::{CliError, unexpected};
use super::exit;
use super::job_id::job_id;
use super::render::history as render;

pub(super) const EXAMPLES: &str = "\
AEGIS remembers what the runs of a command needed, so that the next one gets the right GPU at once. \
Commands are recognised without wrappers (nice, env, torchrun, bash -c) and without what does not \
change their need: seeds, output directories, run names, ports, dates. Of each command the newest 32 \
attempts are kept, of each user the 256 commands used last. Nobody but root sees other people's.

Examples:
  aegis history                          what is known, last used first
  aegis history 7                        what is known of job 7's command, run by run
  aegis history train.py batch-size=64   commands in which these words occur
  aegis history forget 7                 start anew with it, after a change of the program
";

const FORGET_EXAMPLES: &str = "\
Examples:
  aegis history forget 7
  aegis history forget train.py
  aegis history forget --all
";

/// Options of `history`.
#[derive(Args)]
pub(super) struct HistoryArgs {
    /// What to do with it; shown, if nothing is said.
    #[command(subcommand)]
    verb: Option<HistoryVerb>,
    #[command(flatten)]
    target: Target,
}

/// What to do with what is known.
#[derive(Subcommand)]
enum HistoryVerb {
    /// Forget what is known of commands, for good.
    #[command(after_help = FORGET_EXAMPLES)]
    Forget {
        #[command(flatten)]
        target: Target,
        /// Everything.
        #[arg(long, conflicts_with = "which")]
        all: bool,
    },
}

/// Which commands.
#[derive(Args)]
struct Target {
    /// Numbers of jobs whose commands are meant, or words that occur in the command.
    #[arg(value_name = "JOB|COMMAND")]
    which: Vec<String>,
    /// Everybody's; for root.
    #[arg(long)]
    all_users: bool,
}

impl Target {
    fn filter(&self) -> HistoryFilter {
        let mut filter = HistoryFilter {
            all_users: self.all_users,
            ..HistoryFilter::default()
        };
        for text in &self.which {
            match job_id(text) {
                Ok(job) => filter.jobs.push(job),
                Err(_) => filter.words.push(text.clone()),
            }
        }
        filter
    }
}

/// The `--json` document.
#[derive(Serialize)]
struct Document {
    commands: Vec<HistoryEntry>,
}

/// The `--json` document of `forget`.
#[derive(Serialize)]
struct Forgotten {
    forgotten: Vec<HistoryEntry>,
}

/// Shows or forgets.
pub(super) fn run(args: &HistoryArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    if let Some(HistoryVerb::Forget { target, all }) = &args.verb {
        return forget(target, *all, cx);
    }
    let filter = args.target.filter();
    let chosen = !(filter.jobs.is_empty() && filter.words.is_empty());
    let commands = ask(cx, Request::History { filter })?;
    if cx.out.json {
        cx.out.document(&Document { commands })?;
    } else {
        let text = match commands.as_slice() {
            [one] if chosen => render::one(one, &cx.out.style),
            list => render::list(list, args.target.all_users, chosen, &cx.out.style),
        };
        cx.out.text(&text)?;
    }
    Ok(exit::OK)
}

fn forget(target: &Target, everything: bool, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let filter = target.filter();
    let forgotten = ask(cx, Request::Forget { filter, everything })?;
    if cx.out.json {
        cx.out.document(&Forgotten { forgotten })?;
    } else {
        let text = render::forgotten(&forgotten);
        cx.out.text(&text)?;
    }
    Ok(exit::OK)
}

fn ask(cx: &Context<'_>, request: Request) -> Result<Vec<HistoryEntry>, CliError> {
    match cx.connect()?.ask(&request)? {
        Response::History { entries } => Ok(entries),
        _ => Err(unexpected("history")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::args::{Args as Line, Verb};
    use super::*;
    use aegis_common::id::JobId;
    use clap::Parser;

    fn parsed(line: &str) -> (bool, bool, HistoryFilter) {
        let args = Line::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{error}"));
        let Verb::History(args) = args.verb else {
            panic!("{line}")
        };
        match args.verb {
            None => (false, false, args.target.filter()),
            Some(HistoryVerb::Forget { target, all }) => (true, all, target.filter()),
        }
    }

    #[test]
    fn numbers_are_jobs_and_the_rest_are_words() {
        let filter = |jobs: &[u64], words: &[&str], all_users| HistoryFilter {
            all_users,
            jobs: jobs.iter().copied().map(JobId).collect(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
        };
        for (line, expected) in [
            ("aegis history", (false, false, filter(&[], &[], false))),
            (
                "aegis history #7 train.py --all-users --json",
                (false, false, filter(&[7], &["train.py"], true)),
            ),
            (
                "aegis history --json forget 7 8",
                (true, false, filter(&[7, 8], &[], false)),
            ),
            (
                "aegis history forget --all --json",
                (true, true, filter(&[], &[], false)),
            ),
            (
                "aegis history -- forget",
                (false, false, filter(&[], &["forget"], false)),
            ),
        ] {
            assert_eq!(parsed(line), expected, "{line}");
        }
        assert!(Line::try_parse_from(["aegis", "history", "forget", "--all", "7"]).is_err());
    }
}
