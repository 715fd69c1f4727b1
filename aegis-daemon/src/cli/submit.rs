//! `aegis submit`: hand a command to the daemon.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::time::Duration;

use aegis_common::job::{JobState, Resources};
use aegis_common::wire::{
    ErrorCode, Explanation, JobView, NAME_MAX, Request, Response, Submit, SuspendWish,
};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use serde::Serialize;

use super::context::Context;
use super::error::{CliError, hinted, unexpected};
use super::render::{explanation, history, job};
use super::sanitise::sanitise;
use super::style::Style;
use super::{exit, launch, wait};
use crate::config::{quantity, signal};

pub(super) const EXAMPLES: &str = "\
The command runs in this directory with this environment and umask; its arguments are passed on \
byte for byte, without a shell. Output goes to a log file: aegis log ID.

With --on-suspend a job may be stopped for others without losing its work. Its main process gets the \
signal, saves and exits; after the time given (jobs.suspend_grace without one) it gets SIGTERM. It is \
started again in its turn, with AEGIS_RESUMED=1 and AEGIS_ATTEMPT one higher. The main process is the \
command itself: a shell script in between must `exec` the training. In Python:

  import os, signal, sys
  wanted = False
  def ask(*_):
      global wanted
      wanted = True
  signal.signal(signal.SIGUSR1, ask)
  step = load('last.pt') if os.environ.get('AEGIS_RESUMED') else 0
  while step < steps:
      step = train(step)
      if wanted:
          save('last.pt', step)
          sys.exit(0)

Examples:
  aegis submit -- python train.py --lr 0.1
  aegis submit --gpus 2 --name big -- torchrun --nproc-per-node 2 train.py
  aegis submit --gpu-mem 20GiB --time-limit 4h -- ./train.sh
  aegis submit --on-suspend SIGUSR1:90s -- python train.py
  id=$(aegis submit --parsable -- python train.py) && aegis wait $id
";

/// Below this a size was written without its unit or by mistake.
const LEAST_GPU_MEM: u64 = 1 << 20;

/// Options of `submit`.
#[derive(Args)]
pub(super) struct SubmitArgs {
    /// GPUs, all held until the command ends.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = gpus)]
    gpus: u32,
    /// Peak memory on each GPU, like 20GiB. The job sees GPUs of this size. Without it the lease
    /// starts small and grows.
    #[arg(long, value_name = "SIZE", value_parser = gpu_mem)]
    gpu_mem: Option<u64>,
    /// Higher starts first; below 0 for everybody, above 0 for administrators.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    priority: i32,
    /// Share the GPUs with nobody.
    #[arg(long)]
    exclusive: bool,
    /// Name for lists; the program's name without it.
    #[arg(long, value_name = "NAME", value_parser = OsStringValueParser::new().try_map(|text| name(&text)))]
    name: Option<String>,
    /// Stop an attempt after this running time, like 90m or 4h.
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    time_limit: Option<u64>,
    /// Attempts after the first that running out of GPU memory may use.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    retries: Option<u32>,
    /// May be stopped and started again from the beginning to make room for an older job.
    #[arg(long, conflicts_with = "no_requeue")]
    requeue: bool,
    /// Must not be stopped for other jobs; it may have to wait longer for a shared GPU.
    #[arg(long)]
    no_requeue: bool,
    /// It saves its state and exits when its main process gets this signal: it may be stopped for
    /// other jobs and is started again. SIGUSR1, or SIGUSR1:90s with the time it needs.
    #[arg(long, value_name = "SIGNAL[:TIME]", value_parser = on_suspend, conflicts_with = "no_requeue")]
    on_suspend: Option<SuspendWish>,
    /// Print only the job's id.
    #[arg(long)]
    parsable: bool,
    /// Wait for the end and exit with the job's code. Ctrl-C stops the waiting, not the job.
    #[arg(long)]
    wait: bool,
    /// The command and its arguments. -- before it ends the options of aegis.
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub(super) command: Vec<OsString>,
}

fn gpus(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("a job needs at least 1 GPU".to_owned()),
        Ok(gpus) => Ok(gpus),
        Err(error) => Err(format!("not a number of GPUs: {error}")),
    }
}

fn gpu_mem(text: &str) -> Result<u64, String> {
    let bytes = quantity::size(text)?;
    if bytes < LEAST_GPU_MEM {
        return Err("less than 1MiB; sizes are written like 20GiB".to_owned());
    }
    Ok(bytes)
}

fn name(text: &OsStr) -> Result<String, String> {
    let text = text.to_str().ok_or("the name is not UTF-8")?;
    if text.is_empty() {
        return Err("the name is empty".to_owned());
    }
    if text.len() > NAME_MAX {
        return Err(format!("the name has more than {NAME_MAX} bytes"));
    }
    Ok(text.to_owned())
}

/// Whole seconds, rounded up.
fn time_limit(text: &str) -> Result<u64, String> {
    let limit = quantity::duration(text)?;
    if limit < Duration::from_secs(1) {
        return Err("less than 1s".to_owned());
    }
    Ok(limit.as_secs() + u64::from(limit.subsec_nanos() > 0))
}

/// `SIGUSR1` or `SIGUSR1:90s`; seconds are rounded up.
fn on_suspend(text: &str) -> Result<SuspendWish, String> {
    let (name, grace) = match text.split_once(':') {
        Some((name, grace)) => (name, Some(grace)),
        None => (text, None),
    };
    let signal = signal::request(name)?;
    let grace_s = grace.map(time_limit).transpose()?;
    let grace_s = grace_s.map(u32::try_from).transpose();
    Ok(SuspendWish {
        signal,
        grace_s: grace_s.map_err(|_| "the time is too long".to_owned())?,
    })
}

/// The `--json` document.
#[derive(Serialize)]
struct Document<'a> {
    job: &'a JobView,
    explanation: &'a Explanation,
}

/// Submits.
pub(super) fn run(args: SubmitArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let request = Submit {
        resources: Resources {
            gpus: args.gpus,
            gpu_mem: args.gpu_mem,
            priority: args.priority,
            exclusive: args.exclusive,
            requeue: args.requeue,
            retries: args.retries.unwrap_or_default(),
            time_limit_s: args.time_limit,
            on_suspend: None,
        },
        requeue: (args.requeue || args.no_requeue).then_some(args.requeue),
        retries: args.retries,
        on_suspend: args.on_suspend,
        name: args.name,
        launch: launch::capture(args.command)?,
    };
    let mut client = cx.connect()?;
    let answer = client.ask(&Request::Submit(Box::new(request)));
    let Response::Submitted { job, explanation } = answer.map_err(named_limits)? else {
        return Err(unexpected("submit"));
    };
    if args.wait {
        if !cx.out.json {
            let text = if args.parsable {
                format!("{}\n", job.id)
            } else {
                submitted(&job)
            };
            cx.out.text(&text)?;
        }
        let ended = wait::for_one(&mut client, job.id)?;
        if cx.out.json {
            cx.out.document(&Document {
                job: &ended,
                explanation: &explanation,
            })?;
        } else if !args.parsable {
            cx.out.text(&wait::line(&ended))?;
        }
        return Ok(wait::code(&ended));
    }
    if cx.out.json {
        cx.out.document(&Document {
            job: &job,
            explanation: &explanation,
        })?;
    } else if args.parsable {
        cx.out.text(&format!("{}\n", job.id))?;
    } else {
        let text = render(&job, &explanation, &cx.out.style);
        cx.out.text(&text)?;
    }
    Ok(exit::OK)
}

/// The daemon refuses what the machine cannot do; where to look is ours to say.
fn named_limits(mut failure: aegis_common::wire::Failure) -> aegis_common::wire::Failure {
    if failure.code == ErrorCode::Impossible && failure.hint.is_none() {
        failure = hinted(
            failure.code,
            failure.message,
            "`aegis gpus` shows what this machine has",
        );
    }
    failure
}

fn submitted(job: &JobView) -> String {
    format!("Job {} submitted: {}\n", job.id, sanitise(&job.name))
}

/// What happened to the submission, and what can be done next.
fn render(job: &JobView, why: &Explanation, style: &Style) -> String {
    let id = job.id;
    let mut out = submitted(job);
    if let Some(learned) = &job.learned {
        let _ = writeln!(out, "Known: {}.", history::learned(learned));
    }
    match (&job.state, job.attempts.last()) {
        (JobState::Pending, _) => out.push_str(&explanation::blockers(why, style)),
        (_, Some(attempt)) => {
            let _ = writeln!(out, "Started on GPU {}.", job::gpu_list(&attempt.gpus));
        }
        (_, None) => out.push_str("Starting.\n"),
    }
    let _ = writeln!(
        out,
        "Next: aegis status {id} | aegis log -f {id} | aegis wait {id} | aegis cancel {id}"
    );
    out
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_suspension_is_a_signal_and_a_time() {
        let wish = |signal, grace_s| Ok(SuspendWish { signal, grace_s });
        assert_eq!(on_suspend("SIGUSR1"), wish(10, None));
        assert_eq!(on_suspend("usr2:90s"), wish(12, Some(90)));
        assert_eq!(on_suspend("15:1500ms"), wish(15, Some(2)));
        for (text, part) in [
            ("SIGUSR1:", "duration"),
            ("SIGUSR1:9", "unit is missing"),
            (":9s", "signals are written like"),
            ("KILL:9s", "cannot be caught"),
            ("USR1:1000years", "too long"),
        ] {
            let error = on_suspend(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn sizes_and_times_are_checked() {
        assert_eq!(gpu_mem("20G").unwrap(), 20 << 30);
        assert!(gpu_mem("20").unwrap_err().contains("unit"));
        assert!(gpu_mem("20B").unwrap_err().contains("1MiB"));
        assert_eq!(time_limit("1500ms").unwrap(), 2);
        assert!(time_limit("10ms").is_err());
        let name = |text: &[u8]| name(OsStr::from_bytes(text));
        assert!(name(b"").is_err() && name(&[b'x'; NAME_MAX + 1]).is_err());
        assert!(name(b"\xff").is_err() && name(b"x").is_ok());
    }
}
