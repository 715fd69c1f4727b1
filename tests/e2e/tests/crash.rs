//! The daemon crashes at every point where it could lose something, and loses nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use aegis_common::id::JobId;
use aegis_common::job::{Exit, JobState, Outcome};
use aegis_common::wire::JobView;
use anyhow::{Context, Result, bail};
use e2e::{Answer, GIB, Setup, World, alive};

/// What a job of the script does, and how it must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Exits with this code.
    Exits(i32),
    /// Runs until it is cancelled.
    Cancelled,
    /// Killed by its own signal.
    Signalled,
}

/// One crash, the script run to its end whatever it takes.
struct Script {
    world: World,
    effects: PathBuf,
    kinds: BTreeMap<String, Kind>,
    crashes: usize,
    /// Where the next daemon crashes, and the one after it.
    plan: [u64; 2],
}

impl Script {
    fn new() -> Result<Self> {
        let world = World::prepare(Setup::gpus(1, 16 * GIB).key("daemon.log_level", "\"warn\""))?;
        let effects = world.file("effects");
        std::fs::create_dir(&effects)?;
        Ok(Self {
            world,
            effects,
            kinds: BTreeMap::new(),
            crashes: 0,
            plan: [u64::MAX; 2],
        })
    }

    /// Starts daemons until one gets ready.
    fn revive(&mut self) -> Result<()> {
        loop {
            let [crash_at, next] = self.plan;
            self.plan = [next, u64::MAX];
            if self.world.start_crashing(crash_at)? {
                return Ok(());
            }
            self.crashes += 1;
        }
    }

    /// Runs `aegis` until a daemon answers.
    fn insist(&mut self, arguments: &[&str]) -> Result<Answer> {
        loop {
            let answer = self.world.run(arguments)?;
            // 69: not reachable. The connection may also break before the daemon is seen dead.
            if answer.code != 69 {
                return Ok(answer);
            }
            let mut daemon = self.world.take_daemon()?;
            let status = e2e::until(&format!("its end, after {answer:?}"), || daemon.try_ended())?;
            if !daemon.log().contains("crash point") {
                bail!("the daemon ended by itself ({status})");
            }
            self.crashes += 1;
            self.revive()?;
        }
    }

    fn find(&mut self, name: &str) -> Result<Option<JobView>> {
        let answer = self.insist(&["queue", "--all", "--limit", "100000", "--json"])?;
        let queue: aegis_common::wire::QueueView =
            serde_json::from_str(&answer.stdout).with_context(|| format!("{answer:?}"))?;
        Ok(queue.jobs.into_iter().find(|job| job.name == name))
    }

    /// Submits once, also if the answer is lost on the way.
    fn submit(&mut self, name: &str, kind: Kind) -> Result<JobId> {
        self.kinds.insert(name.to_owned(), kind);
        let end = match kind {
            Kind::Exits(code) => format!("exit {code}"),
            Kind::Cancelled => "exec sleep 1000".to_owned(),
            Kind::Signalled => "kill -USR2 $$".to_owned(),
        };
        let script = format!(
            "echo \"$AEGIS_JOB_ID $AEGIS_ATTEMPT $$\" >> {}/{name}; {end}",
            self.effects.display()
        );
        loop {
            if let Some(view) = self.find(name)? {
                return Ok(view.id);
            }
            let crashes = self.crashes;
            let arguments = [
                "submit",
                "--exclusive",
                "--name",
                name,
                "--",
                "sh",
                "-c",
                &script,
            ];
            let answer = self.world.run(arguments)?;
            if answer.code == 69 {
                // Accepted or not? The next daemon knows.
                self.insist(&["queue"])?;
                assert!(self.crashes > crashes, "{answer:?}");
            } else if answer.code != 0 {
                bail!("{answer:?}");
            }
        }
    }

    /// Jobs running and waiting, one cancelled while it runs, one while it waits.
    fn round(&mut self, number: u64) -> Result<()> {
        let name = |what: &str| format!("r{number}-{what}");
        self.revive()?;
        let long = self.submit(&name("long"), Kind::Cancelled)?;
        // Below the exit codes that `aegis` itself has.
        let code = i32::try_from(number % 50)? + 1;
        let first = self.submit(&name("first"), Kind::Exits(code))?;
        let dropped = self.submit(&name("dropped"), Kind::Cancelled)?;
        let second = self.submit(&name("second"), Kind::Signalled)?;
        self.insist(&["cancel", &dropped.to_string()])?;
        self.insist(&["cancel", &long.to_string()])?;
        assert_eq!(self.insist(&["wait", &first.to_string()])?.code, code);
        assert_eq!(self.insist(&["wait", &second.to_string()])?.code, 128 + 12);
        Ok(())
    }

    /// Ends the round's daemon.
    fn rest(&mut self) -> Result<()> {
        let mut daemon = self.world.take_daemon()?;
        if daemon.try_ended()?.is_some() {
            self.crashes += 1;
        } else {
            daemon.terminate()?;
        }
        Ok(())
    }

    /// None lost, none run twice, every end true.
    fn check(&mut self) -> Result<()> {
        self.plan = [u64::MAX; 2];
        self.revive()?;
        let queue = self.world.queue()?;
        let mut names = BTreeMap::new();
        for view in &queue.jobs {
            *names.entry(view.name.clone()).or_insert(0) += 1;
        }
        for (name, kind) in &self.kinds {
            assert_eq!(names.get(name), Some(&1), "{name} exists once");
            let view = queue
                .jobs
                .iter()
                .find(|v| v.name == *name)
                .context("view")?;
            let JobState::Done { outcome } = &view.state else {
                panic!("{name} is not over: {view:?}");
            };
            match kind {
                Kind::Exits(code) => {
                    let exit = Exit::Code(*code);
                    assert_eq!(*outcome, Outcome::Failed { exit }, "{view:?}");
                }
                Kind::Signalled => {
                    let exit = Exit::Signal(12);
                    assert_eq!(*outcome, Outcome::Failed { exit }, "{view:?}");
                }
                Kind::Cancelled => {
                    assert!(matches!(outcome, Outcome::Cancelled { .. }), "{view:?}");
                }
            }
            self.check_runs(name, view)?;
        }
        Ok(())
    }

    /// One start record, one run of the command and one view for each attempt.
    fn check_runs(&self, name: &str, view: &JobView) -> Result<()> {
        let text = std::fs::read_to_string(self.effects.join(name)).unwrap_or_default();
        let mut runs: Vec<(u64, u32)> = Vec::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            runs.push((words[0].parse()?, words[1].parse()?));
            assert!(!alive(words[2].parse()?), "{name} still runs: {line}");
        }
        // An attempt cancelled between decision and start has no start record, and never ran.
        let started = view.attempts.iter().filter(|a| a.started.is_some());
        let attempts: Vec<u32> = started.map(|a| a.number).collect();
        let mut records = Vec::new();
        for entry in std::fs::read_dir(self.world.job_dir(view.id))
            .into_iter()
            .flatten()
        {
            let file = entry?.file_name();
            let file = file.to_string_lossy().into_owned();
            if let Some(number) = file.strip_suffix(".start") {
                records.push(number.parse::<u32>()?);
            }
        }
        records.sort_unstable();
        assert_eq!(
            records, attempts,
            "{name}: one start record per attempt: {view:?}"
        );
        let mut seen = runs.clone();
        seen.dedup();
        assert_eq!(seen, runs, "{name}: no attempt ran twice");
        for (job, attempt) in &runs {
            assert_eq!(*job, view.id.0, "{name}");
            assert!(
                records.contains(attempt),
                "{name}: a run without start record"
            );
        }
        if !matches!(self.kinds.get(name), Some(Kind::Cancelled)) {
            assert_eq!(runs.len(), 1, "{name}: ran once: {text:?}");
        }
        Ok(())
    }
}

/// Rounds with a crash at point `first`, `first + step`, … until a daemon survives its round; the
/// daemon after the crash crashes, too, at `again(n)`.
fn crash_everywhere(
    first: u64,
    step: usize,
    again: impl Fn(u64) -> u64,
    least: usize,
) -> Result<()> {
    let mut script = Script::new()?;
    let mut points = (first..).step_by(step);
    let mut number = 0;
    loop {
        let point = points.next().unwrap_or(first);
        number += 1;
        assert!(number < 1000, "only {} crashes", script.crashes);
        script.plan = [point, again(point)];
        let before = script.crashes;
        script.round(number)?;
        script.rest()?;
        if script.crashes == before {
            // This point lies beyond the round: all before it were hit.
            if script.crashes >= least {
                break;
            }
            points = (first..).step_by(step);
        }
    }
    println!("{} crash-restarts in {number} rounds", script.crashes);
    script.check()
}

// Must show: failpoints after every journal write and every action, ≥ 200 crash-restarts with jobs
// running and waiting. Four tests of at least 50 each, so that they can run side by side.

#[test]
fn odd_points_then_a_quiet_restart() -> Result<()> {
    crash_everywhere(1, 2, |_| u64::MAX, 50)
}

#[test]
fn even_points_then_a_quiet_restart() -> Result<()> {
    crash_everywhere(2, 2, |_| u64::MAX, 50)
}

#[test]
fn odd_points_then_a_crash_in_recovery() -> Result<()> {
    crash_everywhere(1, 2, |point| 1 + point % 7, 50)
}

#[test]
fn even_points_then_a_crash_soon_after() -> Result<()> {
    crash_everywhere(2, 2, |point| 1 + point % 23, 50)
}

#[test]
fn a_running_job_survives_kill_9_and_is_adopted() -> Result<()> {
    let mut world = World::start(Setup::gpus(1, 16 * GIB))?;
    let go = world.file("go");
    let script = format!(
        "echo up; while [ ! -e {} ]; do sleep 0.05; done; exit 6",
        go.display()
    );
    let job = world.submit(&[], &["sh", "-c", &script])?;
    world.said(job, 1, "up")?;
    let waiting = world.submit(&["--exclusive"], &["true"])?;
    for _ in 0..3 {
        world.crash_and_restart()?;
        let view = world.running(job)?;
        assert_eq!(view.attempts.len(), 1);
    }
    std::fs::write(&go, "")?;
    assert_eq!(world.wait(job)?, 6);
    assert_eq!(world.wait(waiting)?, 0);
    Ok(())
}

#[test]
fn a_job_that_ends_while_no_daemon_runs_keeps_its_exit_code() -> Result<()> {
    let mut world = World::start(Setup::gpus(1, 16 * GIB))?;
    let go = world.file("go");
    let script = format!(
        "echo $$ up; while [ ! -e {} ]; do sleep 0.05; done; exit 6",
        go.display()
    );
    let job = world.submit(&[], &["sh", "-c", &script])?;
    let log = world.log_of(job, 1)?;
    let line = e2e::Lines::follow(&log)?.wait("up", |line| line.ends_with("up"))?;
    let pid: u32 = line.split(' ').next().context("pid")?.parse()?;
    world.take_daemon()?.kill()?;
    std::fs::write(&go, "")?;
    e2e::until("the job's end", || Ok((!alive(pid)).then_some(())))?;
    world.start_daemon()?;
    assert_eq!(world.wait(job)?, 6);
    Ok(())
}

#[test]
fn a_killed_keeper_loses_the_job_and_says_so() -> Result<()> {
    // C11: keeper killed: job killed, state `lost`.
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(&[], &["sh", "-c", "echo pid $$; exec sleep 1000"])?;
    let pid: u32 = world.said(job, 1, "pid")?.parse()?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let parent = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().nth(1));
    e2e::kill(
        parent.context("parent")?.parse()?,
        rustix::process::Signal::KILL,
    );
    let (_, outcome) = world.done(job)?;
    assert_eq!(outcome, Outcome::Lost);
    e2e::until("the job is dead", || Ok((!alive(pid)).then_some(())))?;
    Ok(())
}

#[test]
fn an_orderly_restart_leaves_jobs_running() -> Result<()> {
    let mut world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(
        &["--gpu-mem", "3GiB"],
        &world.workload(&["hold", "2GiB", "--launch"]),
    )?;
    world.said(job, 1, "READY")?;
    let status = world.take_daemon()?.terminate()?;
    assert!(status.success(), "{status}");
    world.start_daemon()?;
    world.running(job)?;
    world.cancel(job)?;
    Ok(())
}
