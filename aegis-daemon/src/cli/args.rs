//! The verbs and the options they share.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Parser, Subcommand};

use super::{
    cancel::CancelArgs, completions::CompletionsArgs, doctor::DoctorArgs, exit,
    explain::ExplainArgs, gpus::GpusArgs, help::HelpArgs, history::HistoryArgs,
    inspect::InspectArgs, log::LogArgs, queue::QueueArgs, replay::ReplayArgs, status::StatusArgs,
    submit::SubmitArgs, wait::WaitArgs,
};

const EXAMPLES: &str = "\
Examples:
  aegis submit -- python train.py        run it as soon as a GPU can safely take it
  aegis explain 7                        why job 7 waits, and what clears it
  aegis log -f 7                         follow its output

";

/// Share the GPUs of this machine among training jobs.
#[derive(Parser)]
#[command(
    name = "aegis",
    version,
    disable_help_subcommand = true,
    propagate_version = false,
    after_help = format!("{EXAMPLES}{}", exit::TABLE)
)]
pub(super) struct Args {
    /// One JSON document on standard output, everything else on standard error.
    #[arg(long, global = true, display_order = 1000)]
    pub json: bool,
    /// The daemon's socket. Without it: the rootless daemon's if there is one, else
    /// /run/aegis/aegis.sock.
    #[arg(
        long,
        global = true,
        display_order = 1001,
        env = "AEGIS_SOCKET",
        hide_env_values = true,
        value_name = "PATH",
        value_parser = OsStringValueParser::new().map(PathBuf::from)
    )]
    pub socket: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Subcommand)]
pub(super) enum Verb {
    /// Run a command as soon as GPUs can safely take it.
    #[command(after_help = super::submit::EXAMPLES)]
    Submit(SubmitArgs),
    /// List jobs.
    #[command(after_help = super::queue::EXAMPLES)]
    Queue(QueueArgs),
    /// Show everything about one job.
    #[command(after_help = super::status::EXAMPLES)]
    Status(StatusArgs),
    /// Say why a job waits, or what happened to it.
    #[command(after_help = super::explain::EXAMPLES)]
    Explain(ExplainArgs),
    /// Print a job's output.
    #[command(after_help = super::log::EXAMPLES)]
    Log(LogArgs),
    /// Wait for jobs to end; exits with the job's code.
    #[command(after_help = super::wait::EXAMPLES)]
    Wait(WaitArgs),
    /// End jobs.
    #[command(after_help = super::cancel::EXAMPLES)]
    Cancel(CancelArgs),
    /// List GPUs and who is on them.
    #[command(after_help = super::gpus::EXAMPLES)]
    Gpus(GpusArgs),
    /// Show what processes hold on GPUs, from shared memory; also without the daemon.
    #[command(after_help = super::inspect::EXAMPLES)]
    Inspect(InspectArgs),
    /// Show or forget what earlier runs of commands taught.
    #[command(after_help = super::history::EXAMPLES)]
    History(HistoryArgs),
    /// Show what a policy would do with these jobs on that machine; needs no daemon.
    #[command(after_help = super::replay::EXAMPLES)]
    Replay(ReplayArgs),
    /// Check this machine and the daemon.
    #[command(after_help = super::doctor::EXAMPLES)]
    Doctor(DoctorArgs),
    /// Print a completion script for a shell.
    #[command(after_help = super::completions::EXAMPLES)]
    Completions(CompletionsArgs),
    /// Print help about a verb or the exit codes.
    #[command(after_help = super::help::EXAMPLES)]
    Help(HelpArgs),
}
