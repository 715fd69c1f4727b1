//! From a client's request to a job's first instruction, and from one job's end to the next one's
//! start.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use aegis_common::bytes::ByteString;
use aegis_common::job::{JobState, Outcome, Resources};
use aegis_common::wire::{JobView, Submit};
use anyhow::{Context, Result, bail};
use e2e::{GIB, Setup, World};

use crate::client::{Client, resources, submission};
use crate::host::now_ns;
use crate::report::Figure;
use crate::stats::{Stats, ms};

/// Submissions one after the other.
const RUNS: usize = 30;
/// Submissions after a pause in which telemetry fell asleep.
const SLEEPY_RUNS: usize = 5;
/// Longer than a sample of a GPU counts as fresh (5 s), so that the submission must wait for one.
const SLEEP: Duration = Duration::from_secs(6);

/// Measures.
///
/// # Errors
/// The daemon did not start, or a job did not run.
pub(crate) fn measure() -> Result<Vec<Figure>> {
    let bench = Bench::new()?;
    let floor = bench.repeat(RUNS, Bench::fork_exec)?;
    let awake = bench.repeat(RUNS, Bench::submit_to_start)?;
    let asleep = bench.repeat(SLEEPY_RUNS, |bench| {
        std::thread::sleep(SLEEP);
        bench.submit_to_start()
    })?;
    let cli = bench.repeat(RUNS, Bench::cli_to_start)?;
    let next = bench.repeat(RUNS, Bench::end_to_next)?;
    let after_memory = bench.repeat(RUNS, Bench::end_to_next_with_memory)?;
    let worse = if asleep.median > awake.median {
        asleep
    } else {
        awake
    };
    Ok(vec![
        Figure::new(
            "submit_to_start_ms",
            "before a client sends its request to the job's first instruction: the worse of the \
             next two",
            Some(10.0),
            worse,
        ),
        Figure::new(
            "submit_to_start_awake_ms",
            "telemetry has just been read",
            None,
            awake,
        ),
        Figure::new(
            "submit_to_start_asleep_ms",
            "telemetry was last read 6 s before",
            None,
            asleep,
        ),
        Figure::new(
            "cli_submit_to_start_ms",
            "the same from before `aegis submit` is executed",
            None,
            cli,
        ),
        Figure::new(
            "end_to_next_start_ms",
            "last instruction of a job to the first of the exclusive one behind it",
            Some(5.0),
            next,
        ),
        Figure::new(
            "end_to_next_start_memory_ms",
            "the same where the GPU's memory must first be seen free",
            None,
            after_memory,
        ),
        Figure::new(
            "fork_exec_floor_ms",
            "fork and exec of the same program by a bare process",
            None,
            floor,
        ),
    ])
}

struct Bench {
    world: World,
    stamp: PathBuf,
}

impl Bench {
    fn new() -> Result<Self> {
        let world = World::start(Setup::plain(1, 80 * GIB))?;
        let stamp = stamp_program()?;
        Ok(Self { world, stamp })
    }

    fn repeat(&self, runs: usize, once: impl Fn(&Self) -> Result<i128>) -> Result<Stats> {
        // The first one warms caches.
        once(self)?;
        let took = (0..runs).map(|_| Ok(ms(once(self)?)));
        Stats::of(took.collect::<Result<_>>()?).context("nothing was measured")
    }

    fn client(&self) -> Result<Client> {
        Client::connect(&self.world.socket())
    }

    /// The stamp program's command line.
    fn command(&self, arguments: &[&Path]) -> Vec<String> {
        let words = std::iter::once(self.stamp.as_path()).chain(arguments.iter().copied());
        words.map(|word| word.display().to_string()).collect()
    }

    /// A submission whose job finds the simulated driver.
    fn job(&self, resources: &Resources, argv: &[String]) -> Submit {
        let mut submit = submission(resources.clone(), argv, self.world.path());
        let driver = format!("LD_LIBRARY_PATH={}", self.world.driver().display());
        submit.launch.env.push(ByteString::from(driver.as_str()));
        submit
    }

    fn fork_exec(&self) -> Result<i128> {
        let started = self.world.file("floor");
        let from = now_ns();
        let status = Command::new(&self.stamp).arg(&started).status()?;
        if !status.success() {
            bail!("the stamp program ended with {status}");
        }
        Ok(read_stamp(&started)? - from)
    }

    fn submit_to_start(&self) -> Result<i128> {
        let started = self.world.file("started");
        let mut client = self.client()?;
        let submit = self.job(&resources(), &self.command(&[&started]));
        let from = now_ns();
        let job = client.submit(submit)?;
        ended_well(&client.wait(job.id)?)?;
        Ok(read_stamp(&started)? - from)
    }

    fn cli_to_start(&self) -> Result<i128> {
        let started = self.world.file("started");
        let from = now_ns();
        let job = self
            .world
            .submit(&[], &self.command(&[&started]))
            .context("aegis submit")?;
        ended_well(&self.client()?.wait(job)?)?;
        Ok(read_stamp(&started)? - from)
    }

    fn end_to_next(&self) -> Result<i128> {
        let exclusive = Resources {
            exclusive: true,
            ..resources()
        };
        let gate = self.world.file("gate");
        let ended = self.world.file("ended");
        make_gate(&gate)?;
        let held = self.world.file("held");
        let holder = self.command(&[&held, &gate, &ended]);
        self.next_after(&exclusive, &holder, None, &gate, &ended)
    }

    /// The first job holds memory on the GPU, and the second one declares more than is free until
    /// NVML shows it given back.
    fn end_to_next_with_memory(&self) -> Result<i128> {
        let declared = Resources {
            gpu_mem: Some(60 * GIB),
            ..resources()
        };
        let gate = self.world.file("gate");
        let ended = self.world.file("ended");
        make_gate(&gate)?;
        // The pipe lets the program start before the gate opens; the stamp comes after its end.
        let script = format!(
            "cat {gate} | {workload} hold 40GiB; exec {stamp} {ended}",
            gate = gate.display(),
            workload = self.world.artifacts.workload.display(),
            stamp = self.stamp.display(),
            ended = ended.display(),
        );
        let holder = ["sh", "-c", &script].map(str::to_owned);
        self.next_after(&declared, &holder, Some("READY"), &gate, &ended)
    }

    fn next_after(
        &self,
        resources: &Resources,
        holder: &[String],
        says: Option<&str>,
        gate: &Path,
        ended: &Path,
    ) -> Result<i128> {
        let started = self.world.file("started");
        let mut client = self.client()?;
        let first = client.submit(self.job(resources, holder))?;
        match says {
            Some(line) => drop(self.world.said(first.id, 1, line)?),
            None => drop(self.world.running(first.id)?),
        }
        let next = self.command(&[&started]);
        let next = client.submit(self.job(resources, &next))?;
        if next.state != JobState::Pending {
            bail!("the second job did not have to wait: {:?}", next.state);
        }
        drop(std::fs::OpenOptions::new().write(true).open(gate)?);
        ended_well(&client.wait(first.id)?)?;
        ended_well(&client.wait(next.id)?)?;
        Ok(read_stamp(&started)? - read_stamp(ended)?)
    }
}

/// The job that says when it runs, built beside this program.
///
/// # Errors
/// It was not built.
pub(crate) fn stamp_program() -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("aegis-bench-stamp");
    if !path.exists() {
        bail!("{} is not built: use `cargo xtask bench`", path.display());
    }
    Ok(path)
}

/// A named pipe that holds its reader until somebody has opened and closed it for writing.
///
/// # Errors
/// It cannot be made.
pub(crate) fn make_gate(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).context("named pipe")
}

fn read_stamp(path: &Path) -> Result<i128> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    std::fs::remove_file(path)?;
    Ok(text.parse()?)
}

fn ended_well(job: &JobView) -> Result<()> {
    match &job.state {
        JobState::Done {
            outcome: Outcome::Ok,
        } => Ok(()),
        other => bail!("job {} is {other:?}", job.id),
    }
}
