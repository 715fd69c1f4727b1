//! This server's own jobs, asked of the daemon.

use std::time::Duration;

use aegis_common::id::Moment;
use aegis_common::wire::{ErrorCode, GpuView, PastJob, Request, Response};

use super::super::Context;
use super::super::client::Client;
use super::super::error::{CliError, hinted, unexpected};

/// What the daemon told.
pub(super) struct Past {
    /// Jobs that ended in the span, by number; at least one.
    pub jobs: Vec<PastJob>,
    /// The server's GPUs.
    pub gpus: Vec<GpuView>,
}

/// Jobs that ended within `span`: one's own, of root everybody's.
pub(super) fn ask(cx: &Context<'_>, span: Duration) -> Result<Past, CliError> {
    let mut client = cx.connect()?;
    let span = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let since = Moment(cx.out.style.now.0.saturating_sub(span));
    let jobs = jobs(&mut client, since)?;
    if jobs.is_empty() {
        return Err(CliError::Failure(hinted(
            ErrorCode::NotFound,
            "no job of yours ended in that span",
            "ask for a longer one, like history:90d; `aegis queue --all` lists what has ended, \
             and only root sees everybody's",
        )));
    }
    match client.ask(&Request::Gpus)? {
        Response::Gpus { gpus } => Ok(Past { jobs, gpus }),
        _ => Err(unexpected("gpus")),
    }
}

/// All pages.
fn jobs(client: &mut Client, since: Moment) -> Result<Vec<PastJob>, CliError> {
    let mut all: Vec<PastJob> = Vec::new();
    loop {
        let after = all.last().map(|job| job.job);
        let Response::PastJobs { jobs, more } = client.ask(&Request::PastJobs { since, after })?
        else {
            return Err(unexpected("past jobs"));
        };
        // A daemon that tells no new job must not be asked for ever.
        let goes_on = more && jobs.last().is_some_and(|last| Some(last.job) > after);
        all.extend(jobs);
        if !goes_on {
            return Ok(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::args::{Args, Verb};
    use super::super::super::out::tests::captured;
    use super::super::super::testing::Daemon;
    use super::*;
    use aegis_common::id::{GpuIndex, JobId};
    use clap::Parser;

    fn past(id: u64) -> PastJob {
        PastJob {
            job: JobId(id),
            uid: 1_000,
            command: format!("train.py {}", id % 2),
            gpus: 1,
            gpu_mem: None,
            time_limit_s: None,
            submitted: Moment(id * 1_000),
            ended: Moment(id * 1_000 + 400_000),
            completed: id % 2 == 1,
            ran_ms: 300_000,
            last_ran_ms: 300_000,
            peak: 3 << 30,
            observed: None,
        }
    }

    fn gpu(index: u32) -> GpuView {
        GpuView {
            index: GpuIndex(index),
            memory: 80 << 30,
            ..crate::cli::render::samples::gpu()
        }
    }

    /// Two pages of jobs, asked for one after the other.
    fn daemon(jobs: u64) -> Daemon {
        Daemon::answering(move |request| match request {
            Request::PastJobs { after, .. } => {
                let from = after.map_or(1, |job| job.0 + 1);
                let last = jobs.min(from + 3);
                Response::PastJobs {
                    jobs: (from..=last).map(past).collect(),
                    more: last < jobs,
                }
            }
            Request::Gpus => Response::Gpus {
                gpus: vec![gpu(0), gpu(1)],
            },
            other => panic!("{other:?}"),
        })
    }

    fn replay(daemon: &Daemon) -> (Result<u8, CliError>, String) {
        let line = ["aegis", "replay", "--json", "--trace", "history:30d"];
        let Verb::Replay(args) = Args::try_parse_from(line).unwrap().verb else {
            panic!("another verb")
        };
        let (mut out, text) = captured(true);
        let mut cx = Context {
            socket: Some(daemon.socket.clone()),
            out: &mut out,
        };
        (super::super::run(&args, &mut cx), text())
    }

    #[test]
    fn all_pages_are_replayed_on_a_machine_like_the_server() {
        let (result, text) = replay(&daemon(7));
        assert!(matches!(result, Ok(0)), "{result:?}");
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["jobs"], 7);
        assert_eq!(document["gpus"], 2);
        assert_eq!(document["gpu_mem"], 80_u64 << 30);
        let notes = document["assumptions"].to_string();
        assert!(notes.contains("7 jobs keep GPUs as busy"), "{notes}");
        assert!(notes.contains("\"3 jobs failed or were stopped"), "{notes}");
        assert!(notes.contains("telemetry is GPM"), "{notes}");
        assert!(!notes.contains("never seen\""), "{notes}");
    }

    #[test]
    fn a_span_without_jobs_is_said() {
        let (result, _) = replay(&daemon(0));
        let Err(CliError::Failure(failure)) = result else {
            panic!("{result:?}")
        };
        assert_eq!(failure.code, ErrorCode::NotFound);
        assert!(failure.hint.unwrap().contains("history:90d"));
    }
}
