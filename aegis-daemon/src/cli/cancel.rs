//! `aegis cancel`: end jobs.

use aegis_common::id::JobId;
use aegis_common::job::{JobState, Outcome};
use aegis_common::wire::{Failure, JobView, Request, Response};
use clap::Args;
use serde::Serialize;

use super::client::Client;
use super::context::Context;
use super::error::{CliError, tell, unexpected};
use super::job_id::job_id;
use super::out::now;
use super::{exit, wait};

pub(super) const EXAMPLES: &str = "\
Returns when all processes of the jobs are gone: SIGTERM first, SIGKILL after the configured grace.
What can be cancelled is, even if other ids are unknown or other people's.

Examples:
  aegis cancel 7
  aegis cancel 7 8 9
";

/// Options of `cancel`.
#[derive(Args)]
pub(super) struct CancelArgs {
    /// The jobs.
    #[arg(value_name = "ID", required = true, value_parser = job_id)]
    jobs: Vec<JobId>,
}

/// The `--json` document.
#[derive(Serialize)]
struct Document {
    jobs: Vec<JobView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Failure>,
    /// The first of them, so that scripts find `.error` as everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

/// Cancels.
pub(super) fn run(args: &CancelArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let mut wanted = args.jobs.clone();
    wanted.sort();
    wanted.dedup();
    let asked = now();
    let (jobs, errors) = cancel(&mut cx.connect()?, wanted)?;
    let code = errors
        .first()
        .map_or(exit::OK, |error| error.code.exit_code());
    if cx.out.json {
        let error = errors.first().cloned();
        cx.out.document(&Document {
            jobs,
            errors,
            error,
        })?;
        return Ok(code);
    }
    errors.iter().for_each(tell);
    for job in &jobs {
        let before = job.ended.is_some_and(|ended| ended < asked);
        let cancelled = matches!(
            &job.state,
            JobState::Done {
                outcome: Outcome::Cancelled { .. }
            }
        );
        let line = match (before, cancelled) {
            (false, true) => format!("job {} cancelled\n", job.id),
            _ => format!("already over: {}", wait::line(job)),
        };
        cx.out.text(&line)?;
    }
    Ok(code)
}

/// Asks until nothing is refused any more: the daemon names one obstacle at a time and does
/// nothing while there is one.
fn cancel(
    client: &mut Client,
    mut wanted: Vec<JobId>,
) -> Result<(Vec<JobView>, Vec<Failure>), CliError> {
    let mut errors = Vec::new();
    while !wanted.is_empty() {
        match client.ask(&Request::Cancel {
            jobs: wanted.clone(),
        }) {
            Ok(Response::Jobs { jobs }) => return Ok((jobs, errors)),
            Ok(_) => return Err(unexpected("cancel")),
            Err(failure) => match failure.job {
                Some(job) if wanted.contains(&job) => {
                    wanted.retain(|id| *id != job);
                    errors.push(failure);
                }
                _ => return Err(failure.into()),
            },
        }
    }
    Ok((Vec::new(), errors))
}

#[cfg(test)]
mod tests {
    use super::super::error::failure;
    use super::super::testing::Daemon;
    use super::*;
    use aegis_common::wire::ErrorCode;

    #[test]
    fn each_obstacle_is_reported_and_the_rest_is_cancelled() {
        let daemon = Daemon::answering(|request| {
            let Request::Cancel { jobs } = request else {
                panic!()
            };
            let refused = |id, code| {
                let job = Some(JobId(id));
                Response::Failed(Failure {
                    job,
                    ..failure(code, "no")
                })
            };
            if jobs.contains(&JobId(8)) {
                refused(8, ErrorCode::NotFound)
            } else if jobs.contains(&JobId(9)) {
                refused(9, ErrorCode::Forbidden)
            } else {
                assert_eq!(jobs, [JobId(7)]);
                Response::Jobs { jobs: vec![] }
            }
        });
        let mut client = Client::connect(&daemon.socket).unwrap();
        let wanted = vec![JobId(7), JobId(8), JobId(9)];
        let (_, errors) = cancel(&mut client, wanted).unwrap();
        let codes: Vec<ErrorCode> = errors.iter().map(|error| error.code).collect();
        assert_eq!(codes, [ErrorCode::NotFound, ErrorCode::Forbidden]);
    }

    #[test]
    fn a_refusal_that_names_no_job_ends_the_asking() {
        let daemon =
            Daemon::answering(|_| Response::Failed(failure(ErrorCode::Storage, "disk full")));
        let mut client = Client::connect(&daemon.socket).unwrap();
        let result = cancel(&mut client, vec![JobId(1)]);
        assert!(matches!(result, Err(CliError::Failure(f)) if f.code == ErrorCode::Storage));
    }
}
