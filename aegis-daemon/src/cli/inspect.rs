//! `aegis inspect`: what processes hold on GPUs, by their shared memory.

use std::path::Path;

use aegis_common::id::JobId;
use aegis_common::wire::{ErrorCode, Failure, Inspection, Request, Response};
use clap::Args;

use super::client::Client;
use super::context::Context;
use super::error::{CliError, failure, hinted, unexpected};
use super::job_id::job_id;
use super::render::ledger as render;
use super::{exit, socket};

pub(super) const EXAMPLES: &str = "\
A number is a job's id if there is such a job, else a process id; --job and --pid say which. Works \
without the daemon too: the shared memory is found beside its socket.

Examples:
  aegis inspect
  aegis inspect 7
  aegis inspect --pid 41234 --json
";

/// Options of `inspect`.
#[derive(Args)]
pub(super) struct InspectArgs {
    /// A job's id or a process id.
    #[arg(value_name = "ID|PID", conflicts_with_all = ["pid", "job"], value_parser = clap::value_parser!(u64).range(1..))]
    number: Option<u64>,
    /// Only this process.
    #[arg(long, value_name = "PID", conflicts_with = "job")]
    pid: Option<u32>,
    /// Only this job.
    #[arg(long, value_name = "ID", value_parser = job_id)]
    job: Option<JobId>,
}

/// What is asked for.
enum Wanted {
    All,
    Job(JobId),
    Pid(u32),
    Either(u64),
}

/// Inspects.
pub(super) fn run(args: &InspectArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let wanted = match (args.number, args.job, args.pid) {
        (Some(number), _, _) => Wanted::Either(number),
        (_, Some(job), _) => Wanted::Job(job),
        (_, _, Some(pid)) => Wanted::Pid(pid),
        _ => Wanted::All,
    };
    let socket = socket::find(cx.socket.as_deref())?;
    let inspection = match Client::connect(&socket) {
        Ok(mut client) => ask(&mut client, wanted)?,
        Err(failure) if failure.code == ErrorCode::Unreachable => {
            let runtime_dir = socket.parent().unwrap_or(Path::new("/"));
            narrow(offline(runtime_dir, failure)?, &wanted)?
        }
        Err(failure) => return Err(failure.into()),
    };
    if cx.out.json {
        cx.out.document(&inspection)?;
    } else {
        let text = render::render(&inspection, &cx.out.style);
        cx.out.text(&text)?;
    }
    Ok(exit::OK)
}

fn ask(client: &mut Client, wanted: Wanted) -> Result<Inspection, CliError> {
    let (job, pid) = match wanted {
        Wanted::All => (None, None),
        Wanted::Job(job) => (Some(job), None),
        Wanted::Pid(pid) => (None, Some(pid)),
        Wanted::Either(number) => match client.ask(&Request::Status { job: JobId(number) }) {
            Ok(_) => (Some(JobId(number)), None),
            Err(failure) if failure.code == ErrorCode::NotFound => (None, Some(as_pid(number)?)),
            Err(failure) => return Err(failure.into()),
        },
    };
    match client.ask(&Request::Inspect { pid, job })? {
        Response::Inspected(inspection) => Ok(inspection),
        _ => Err(unexpected("inspect")),
    }
}

fn as_pid(number: u64) -> Result<u32, Failure> {
    u32::try_from(number).map_err(|_| neither(number))
}

fn neither(number: u64) -> Failure {
    failure(
        ErrorCode::NotFound,
        format!("{number} is neither a job nor a process here"),
    )
}

/// What the daemon would have left out.
fn narrow(mut inspection: Inspection, wanted: &Wanted) -> Result<Inspection, Failure> {
    let of_job =
        |job: JobId| move |process: &aegis_common::wire::LedgerView| process.job == Some(job);
    match wanted {
        Wanted::All => {}
        Wanted::Job(job) => inspection.processes.retain(of_job(*job)),
        Wanted::Pid(pid) => inspection
            .processes
            .retain(|process| process.process.pid == *pid),
        Wanted::Either(number) if inspection.processes.iter().any(of_job(JobId(*number))) => {
            inspection.processes.retain(of_job(JobId(*number)));
        }
        Wanted::Either(number) => {
            inspection
                .processes
                .retain(|process| u64::from(process.process.pid) == *number);
            if inspection.processes.is_empty() {
                return Err(neither(*number));
            }
        }
    }
    Ok(inspection)
}

/// Reads the shared memory that the keepers still hold. `unreachable` is why the daemon cannot.
fn offline(runtime_dir: &Path, unreachable: Failure) -> Result<Inspection, Failure> {
    crate::lease::inspect::offline(runtime_dir).map_err(|error| {
        hinted(
            ErrorCode::Unreachable,
            format!(
                "{}, and nothing can be read from {} without it: {error}",
                unreachable.message,
                runtime_dir.display()
            ),
            unreachable.hint.unwrap_or_default(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use aegis_common::id::ProcessKey;
    use aegis_common::wire::LedgerView;

    fn process(pid: u32, job: u64) -> LedgerView {
        LedgerView {
            job: Some(JobId(job)),
            process: ProcessKey {
                pid,
                start_ticks: 1,
            },
            command: None,
            alive: true,
            kernels: 0,
            graphs: 0,
            copies: 0,
            memsets: 0,
            idle_ms: None,
            launched: false,
            unknown_lookups: 0,
            bypasses: vec![],
            captures_open: 0,
            gpus: vec![],
            pace: None,
            warning: None,
        }
    }

    fn pids(wanted: &Wanted) -> Option<Vec<u32>> {
        let inspection = Inspection {
            daemon: false,
            processes: vec![process(7, 1), process(8, 7), process(9, 7)],
        };
        let left = narrow(inspection, wanted).ok()?;
        Some(
            left.processes
                .iter()
                .map(|process| process.process.pid)
                .collect(),
        )
    }

    #[test]
    fn a_number_is_a_job_before_it_is_a_process() {
        assert_eq!(pids(&Wanted::Either(7)).unwrap(), [8, 9]);
        assert_eq!(pids(&Wanted::Either(9)).unwrap(), [9]);
        assert_eq!(pids(&Wanted::Pid(7)).unwrap(), [7]);
        assert_eq!(pids(&Wanted::Job(JobId(1))).unwrap(), [7]);
        assert_eq!(pids(&Wanted::All).unwrap(), [7, 8, 9]);
        assert_eq!(pids(&Wanted::Either(10)), None);
    }

    #[test]
    fn the_daemon_is_asked_which_it_is() {
        use super::super::testing::Daemon;
        let daemon = Daemon::answering(|request| match request {
            Request::Status { .. } => Response::Failed(failure(ErrorCode::NotFound, "no such job")),
            Request::Inspect {
                pid: Some(41),
                job: None,
            } => Response::Inspected(Inspection {
                daemon: true,
                processes: vec![],
            }),
            other => panic!("{other:?}"),
        });
        let mut client = Client::connect(&daemon.socket).unwrap();
        assert!(ask(&mut client, Wanted::Either(41)).unwrap().daemon);
        assert!(ask(&mut client, Wanted::Either(1 << 40)).is_err());
    }
}
