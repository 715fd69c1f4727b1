//! Following a log by events: inotify tells of growth, the daemon of the next attempt and the end.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use aegis_common::job::JobState;
use aegis_common::wire::{Attempt, ErrorCode, Failure, JobView, Request, Response};
use inotify::{Inotify, WatchMask};
use rustix::event::{PollFd, PollFlags, poll};

use super::client::Client;
use super::error::{CliError, failure, unexpected, warn};
use super::log_file;
use super::printer::Printer;

/// Prints the last attempt's log and then everything that comes, until the job is over.
pub(super) fn follow(
    client: &mut Client,
    mut job: JobView,
    printer: &mut Printer<'_>,
) -> Result<(), CliError> {
    let last = job.attempts.iter().rfind(|attempt| has_log(attempt));
    let mut seen = last.map_or(0, |attempt| attempt.number.saturating_sub(1));
    let mut first = true;
    loop {
        let over = matches!(job.state, JobState::Done { .. });
        // One by one: a short attempt may have come and gone meanwhile.
        let next = job
            .attempts
            .iter()
            .find(|attempt| attempt.number > seen && has_log(attempt));
        let Some(attempt) = next.cloned() else {
            if over {
                return Ok(());
            }
            warn(&format!(
                "job {} waits for its {} attempt; Ctrl-C stops the waiting, not the job",
                job.id,
                if seen == 0 { "first" } else { "next" }
            ));
            client.send(&wait_attempt(&job, seen))?;
            job = answer(client)?;
            continue;
        };
        if !first {
            warn(&format!(
                "--- job {}, attempt {} ---",
                job.id, attempt.number
            ));
        }
        first = false;
        seen = attempt.number;
        if over || attempt.ended.is_some() {
            let mut file = log_file::open(&job, &attempt)?;
            printer.copy(&mut file, |error| {
                log_file::unreadable(&job, &attempt, error)
            })?;
        } else {
            client.send(&wait_attempt(&job, seen))?;
            job = until_answer(client, &job, &attempt, printer)?;
        }
    }
}

/// Its command was started, so its log was opened before.
fn has_log(attempt: &Attempt) -> bool {
    attempt.started.is_some()
}

fn wait_attempt(job: &JobView, after: u32) -> Request {
    Request::WaitAttempt { job: job.id, after }
}

fn answer(client: &mut Client) -> Result<JobView, CliError> {
    match client.receive()? {
        Response::Status { job } => Ok(*job),
        _ => Err(unexpected("wait_attempt")),
    }
}

/// Prints one attempt's log until the daemon answers.
fn until_answer(
    client: &mut Client,
    job: &JobView,
    attempt: &Attempt,
    printer: &mut Printer<'_>,
) -> Result<JobView, CliError> {
    let mut file = log_file::open(job, attempt)?;
    let mut growth = Growth::watch(attempt)?;
    let mut drain =
        |file: &mut File| printer.copy(file, |error| log_file::unreadable(job, attempt, error));
    loop {
        // Watched first, read then: what comes in between is an event.
        drain(&mut file)?;
        if growth.or_readable(client)? {
            let next = answer(client)?;
            // The tree is gone: nobody writes to this file any more.
            drain(&mut file)?;
            return Ok(next);
        }
    }
}

/// Growth of one file.
struct Growth(Inotify);

impl Growth {
    fn watch(attempt: &Attempt) -> Result<Self, Failure> {
        let inotify = Inotify::init().map_err(|error| cannot(&error))?;
        inotify
            .watches()
            .add(log_file::path(attempt), WatchMask::MODIFY)
            .map_err(|error| cannot(&error))?;
        Ok(Self(inotify))
    }

    /// Sleeps until the file has grown (false) or the daemon has answered (true).
    fn or_readable(&mut self, client: &Client) -> Result<bool, Failure> {
        let mut fds = [
            PollFd::from_borrowed_fd(client.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(false),
            Err(error) => return Err(cannot(&error.into())),
        }
        let answered = fds.first().is_some_and(|fd| !fd.revents().is_empty());
        let grown = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        if grown {
            let mut buffer = [0; 4096];
            match self.0.read_events(&mut buffer) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(cannot(&error)),
            }
        }
        Ok(answered)
    }
}

fn cannot(error: &io::Error) -> Failure {
    failure(
        ErrorCode::Internal,
        format!("cannot watch the log: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};

    use aegis_common::bytes::ByteString;
    use aegis_common::job::Outcome;

    use super::super::out::tests::captured;
    use super::super::render::samples;
    use super::super::testing::Daemon;
    use super::*;

    /// A job with these logs, over or not.
    fn job(logs: &[&std::path::Path], over: bool) -> JobView {
        let mut job = samples::running(7);
        job.attempts = logs
            .iter()
            .enumerate()
            .map(|(index, log)| Attempt {
                log: ByteString::from(log.as_os_str().to_owned()),
                ended: (over || index + 1 < logs.len()).then_some(samples::ago(0)),
                ..samples::attempt(index as u32 + 1)
            })
            .collect();
        if over {
            job.state = JobState::Done {
                outcome: Outcome::Ok,
            };
        }
        job
    }

    #[test]
    fn growth_is_printed_across_attempts_until_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let [first, second] = ["1.log", "2.log"].map(|name| dir.path().join(name));
        std::fs::write(&first, "one\n").unwrap();
        let asked = AtomicU32::new(0);
        let paths = (first.clone(), second.clone());
        let daemon = Daemon::answering(move |request| {
            let Request::WaitAttempt { after, .. } = request else {
                panic!("{request:?}")
            };
            let (first, second) = (&paths.0, &paths.1);
            assert_eq!(after, asked.fetch_add(1, Ordering::SeqCst));
            let append = |path, text: &str| {
                let file = std::fs::OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(path);
                file.unwrap().write_all(text.as_bytes()).unwrap();
            };
            let job = match after {
                0 => job(&[first], false),
                1 => {
                    append(first, "more\n");
                    append(second, "two\n");
                    job(&[first, second], false)
                }
                _ => {
                    append(second, "end\x1b[0m\n");
                    job(&[first, second], true)
                }
            };
            Response::Status { job: Box::new(job) }
        });
        let mut client = Client::connect(&daemon.socket).unwrap();
        let (mut out, text) = captured(false);
        follow(
            &mut client,
            job(&[], false),
            &mut Printer::new(&mut out, false),
        )
        .unwrap();
        assert_eq!(text(), "one\nmore\ntwo\nend\x1b[0m\n");
    }

    #[test]
    fn an_attempt_that_came_and_went_is_not_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let logs = ["1", "2", "3"].map(|name| dir.path().join(name));
        for log in &logs {
            std::fs::write(log, log.file_name().unwrap().as_encoded_bytes()).unwrap();
        }
        let paths = logs.clone();
        let daemon = Daemon::answering(move |_| Response::Status {
            job: Box::new(job(&[&paths[0], &paths[1], &paths[2]], true)),
        });
        let mut client = Client::connect(&daemon.socket).unwrap();
        let (mut out, text) = captured(false);
        let mut printer = Printer::new(&mut out, false);
        follow(&mut client, job(&[&logs[0]], false), &mut printer).unwrap();
        assert_eq!(text(), "123");
    }

    #[test]
    fn an_attempt_whose_command_has_not_started_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let path = log.clone();
        let daemon = Daemon::answering(move |request| {
            assert!(matches!(request, Request::WaitAttempt { after: 0, .. }));
            std::fs::write(&path, "started").unwrap();
            Response::Status {
                job: Box::new(job(&[&path], true)),
            }
        });
        let mut client = Client::connect(&daemon.socket).unwrap();
        let (mut out, text) = captured(false);
        let mut starting = job(&[&log], false);
        starting.attempts[0].started = None;
        follow(&mut client, starting, &mut Printer::new(&mut out, false)).unwrap();
        assert_eq!(text(), "started");
    }

    #[test]
    fn growth_is_printed_while_the_daemon_is_silent() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        std::fs::write(&log, "").unwrap();
        let (grown_tx, grown_rx) = std::sync::mpsc::channel::<()>();
        let grown_rx = Mutex::new(grown_rx);
        let path = log.clone();
        // The daemon answers only after the follower has printed what was appended.
        let daemon = Daemon::answering(move |_| {
            std::fs::write(&path, "growth").unwrap();
            grown_rx.lock().unwrap().recv().unwrap();
            Response::Status {
                job: Box::new(job(&[&path], true)),
            }
        });
        let mut client = Client::connect(&daemon.socket).unwrap();
        let (mut out, text) = super::super::out::tests::watched(move |bytes| {
            if bytes == b"growth" {
                let _ = grown_tx.send(());
            }
        });
        follow(
            &mut client,
            job(&[&log], false),
            &mut Printer::new(&mut out, false),
        )
        .unwrap();
        assert_eq!(text(), "growth");
    }
}
