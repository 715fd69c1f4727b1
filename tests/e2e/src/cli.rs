//! The command line `aegis`, as a user or a script runs it.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Output, Stdio};

use aegis_common::id::JobId;
use aegis_common::job::{JobState, Outcome, Phase};
use aegis_common::wire::{Explanation, GpuView, Inspection, JobView, QueueView};
use anyhow::{Context, Result, anyhow, bail};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::World;

/// What a command answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Exit code; 128 + n for a signal.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Answer {
    /// Everything it said: with `--json` an error is a document on standard output.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let signal = output.status.signal().map_or(255, |signal| 128 + signal);
        Self {
            code: output.status.code().unwrap_or(signal),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl World {
    /// `aegis` with this world's socket and driver in its environment, to be given arguments.
    #[must_use]
    pub fn aegis(&self) -> Command {
        let mut command = Command::new(&self.artifacts.aegis);
        command
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .env("LANG", "C.UTF-8")
            .env("AEGIS_SOCKET", self.socket())
            .env("XDG_RUNTIME_DIR", self.path())
            .env("LD_LIBRARY_PATH", self.driver())
            .stdin(Stdio::null());
        command
    }

    /// Runs `aegis` to its end.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<Answer> {
        let output = self.aegis().args(arguments).output();
        Ok(output.context("starting aegis")?.into())
    }

    /// Runs `aegis` with `--json` and reads its answer.
    ///
    /// # Errors
    /// It failed, or answered something else.
    pub fn json<T: DeserializeOwned>(&self, arguments: &[&str]) -> Result<T> {
        let answer = self.run(arguments.iter().chain(&["--json"]))?;
        if answer.code != 0 {
            bail!(
                "aegis {arguments:?} exited with {}: {}",
                answer.code,
                answer.text()
            );
        }
        serde_json::from_str(&answer.stdout)
            .with_context(|| format!("aegis {arguments:?} answered {}", answer.stdout))
    }

    /// Submits a command.
    ///
    /// # Errors
    /// It was refused.
    pub fn submit<S: AsRef<OsStr>>(&self, options: &[&str], command: &[S]) -> Result<JobId> {
        let answer = self.try_submit(options, command)?;
        if answer.code != 0 {
            bail!("submit exited with {}: {}", answer.code, answer.text());
        }
        let value: Value = serde_json::from_str(&answer.stdout)
            .with_context(|| format!("submit answered {}", answer.stdout))?;
        let id = value.pointer("/job/id").or_else(|| value.get("id"));
        id.and_then(Value::as_u64)
            .map(JobId)
            .ok_or_else(|| anyhow!("no id in {value}"))
    }

    /// Submits a command that may be refused.
    ///
    /// # Errors
    /// `aegis` cannot be started.
    pub fn try_submit<S: AsRef<OsStr>>(&self, options: &[&str], command: &[S]) -> Result<Answer> {
        let words = ["submit", "--json"]
            .iter()
            .chain(options)
            .map(OsString::from);
        let command = command.iter().map(|word| word.as_ref().to_owned());
        self.run(words.chain([OsString::from("--")]).chain(command))
    }

    /// A job as the daemon sees it.
    ///
    /// # Errors
    /// There is no such job, or no daemon.
    pub fn view(&self, job: JobId) -> Result<JobView> {
        self.json(&["status", &job.to_string()])
    }

    /// Why a job is where it is.
    ///
    /// # Errors
    /// As [`World::view`].
    pub fn explain(&self, job: JobId) -> Result<Explanation> {
        self.json(&["explain", &job.to_string()])
    }

    /// The queue, finished jobs included.
    ///
    /// # Errors
    /// No daemon.
    pub fn queue(&self) -> Result<QueueView> {
        self.json(&["queue", "--all", "--limit", "100000"])
    }

    /// The GPUs.
    ///
    /// # Errors
    /// No daemon.
    pub fn gpus(&self) -> Result<Vec<GpuView>> {
        let mut answer: Value = self.json(&["gpus"])?;
        serde_json::from_value(answer["gpus"].take()).context("gpus")
    }

    /// The ledgers of a job.
    ///
    /// # Errors
    /// No such job.
    pub fn inspect(&self, job: JobId) -> Result<Inspection> {
        self.json(&["inspect", "--job", &job.to_string()])
    }

    /// Waits for a job's end; returns its exit code as `aegis wait` passes it on.
    ///
    /// # Errors
    /// `aegis` cannot be started.
    pub fn wait(&self, job: JobId) -> Result<i32> {
        Ok(self.run(["wait", &job.to_string()])?.code)
    }

    /// Cancels a job; returns when its process tree is gone.
    ///
    /// # Errors
    /// It was refused.
    pub fn cancel(&self, job: JobId) -> Result<()> {
        let answer = self.run(["cancel", &job.to_string()])?;
        if answer.code != 0 {
            bail!("cancel exited with {}: {}", answer.code, answer.text());
        }
        Ok(())
    }

    /// Waits until a job's state is `wanted`.
    ///
    /// # Errors
    /// It never was.
    pub fn reach(
        &self,
        job: JobId,
        what: &str,
        wanted: impl Fn(&JobView) -> bool,
    ) -> Result<JobView> {
        let mut last = None;
        crate::until(&format!("job {job} {what}"), || {
            let view = self.view(job)?;
            let there = wanted(&view);
            last = Some(view.clone());
            Ok(there.then_some(view))
        })
        .with_context(|| format!("last seen: {last:?}"))
    }

    /// Waits until a job's command runs.
    ///
    /// # Errors
    /// It never did.
    pub fn running(&self, job: JobId) -> Result<JobView> {
        self.reach(job, "runs", |view| {
            matches!(view.state, JobState::Running { .. })
        })
    }

    /// Waits until a job has been observed.
    ///
    /// # Errors
    /// It never was.
    pub fn steady(&self, job: JobId) -> Result<JobView> {
        self.reach(job, "is steady", |view| {
            view.state
                == JobState::Running {
                    phase: Phase::Steady,
                }
        })
    }

    /// Waits for a job's end; returns its final view.
    ///
    /// # Errors
    /// It never ended.
    pub fn done(&self, job: JobId) -> Result<(JobView, Outcome)> {
        self.run(["wait", &job.to_string()])?;
        let view = self.view(job)?;
        match view.state.clone() {
            JobState::Done { outcome } => Ok((view, outcome)),
            state => bail!("job {job} is {state:?} after `aegis wait`"),
        }
    }

    /// Waits until the explanation of a pending job has these codes.
    ///
    /// # Errors
    /// It never had.
    pub fn blocked(&self, job: JobId, code: &str) -> Result<Explanation> {
        let mut last = None;
        crate::until(&format!("job {job} waits for {code}"), || {
            let explanation = self.explain(job)?;
            let there = explanation
                .blockers
                .iter()
                .any(|b| b.blocker.code() == code);
            last = Some(explanation.clone());
            Ok(there.then_some(explanation))
        })
        .with_context(|| format!("last seen: {last:?}"))
    }
}
