//! Runs one client as a job and compares what the shim counted with what the driver did.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use aegis_common::id::JobId;
use aegis_common::job::{JobState, Outcome};
use aegis_common::wire::{Inspection, LedgerView};
use anyhow::{Context, Result, bail, ensure};
use e2e::{GIB, Setup, World, until};
use rustix::fs::{Mode, OFlags};
use simgpu_core::journal::Record;

use crate::books::Books;
use crate::client::{Client, Program};
use crate::table::{Cell, Row};

/// What the job says it needs: requests beyond it are refused.
const DECLARED: &str = "1GiB";

/// Runs a client; what is wrong with it is in the row.
///
/// # Errors
/// The machine to run it on could not be made.
pub fn check(client: &Client) -> Result<Row> {
    let mut setup = Setup::gpus(1, 16 * GIB);
    // The table says what failed.
    setup.show_log = false;
    let world = World::start(setup)?;
    let version = match (client.package, &world.artifacts.python) {
        (None, _) => None,
        (Some(package), Some(python)) => match version_of(python, package) {
            Some(version) => Some(version),
            None => {
                return Ok(Row::skipped(
                    client.name,
                    format!("{package} is not installed"),
                ));
            }
        },
        (Some(_), None) => {
            return Ok(Row::skipped(
                client.name,
                "there is no target/venv".to_owned(),
            ));
        }
    };
    let gate = world.file("gate");
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, Mode::RUSR | Mode::WUSR).context("pipe")?;
    let command = client.command(&world, &gate).context("no Python")?;
    let mut row = Row::new(client.name, version);
    match stop(client, &world, &command) {
        Ok(stopped) => {
            row.ledger = if client.allocates {
                ledger(&world, &stopped)
            } else {
                no_ledger(&stopped)
            };
            row.oom = out_of_memory(client, &stopped);
            row.works = Cell::of(finish(client, &world, &gate, &stopped));
        }
        Err(error) => row.works = Cell::Failed(format!("{error:#}")),
    }
    Ok(row)
}

/// A client at its stop.
struct Stopped {
    job: JobId,
    pid: u32,
    inspection: Inspection,
    output: String,
}

/// The version of an installed Python package.
#[must_use]
pub fn version_of(python: &Path, package: &str) -> Option<String> {
    let query = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))";
    let output = Command::new(python)
        .args(["-c", query, package])
        .output()
        .ok()?;
    let version = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !version.is_empty()).then_some(version)
}

fn stop(client: &Client, world: &World, command: &[OsString]) -> Result<Stopped> {
    let job = world.submit(&["--gpu-mem", DECLARED, "--retries", "0"], command)?;
    let log = world.log_of(job, 1)?;
    let line = until("the client to stop", || {
        let output = std::fs::read_to_string(&log).unwrap_or_default();
        let whole = output.lines().filter(|_| output.ends_with('\n'));
        if let Some(found) = whole.rev().find(|line| line.starts_with(client.stop())) {
            return Ok(Some(found.to_owned()));
        }
        if matches!(world.view(job)?.state, JobState::Done { .. }) {
            bail!("it ended early: {}", last_lines(&log));
        }
        Ok(None)
    })
    .with_context(|| last_lines(&log))?;
    let pid = line.split_whitespace().nth(1).context("pid")?.parse()?;
    Ok(Stopped {
        job,
        pid,
        inspection: world.inspect(job)?,
        output: std::fs::read_to_string(&log)?,
    })
}

/// The end of a log, for a message of one line.
fn last_lines(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines
        .get(lines.len().saturating_sub(4)..)
        .unwrap_or_default()
        .join(" / ")
}

/// Every figure of the ledger against the journal.
fn ledger(world: &World, stopped: &Stopped) -> Cell {
    let compare = || {
        let records = world.machine.journal_of(stopped.pid)?;
        ensure!(
            !records.is_empty(),
            "the driver saw no call of process {}",
            stopped.pid
        );
        let books = Books::of(&records);
        ensure!(books.allocs > 0, "it allocated nothing");
        let found = stopped
            .inspection
            .processes
            .iter()
            .find(|p| p.process.pid == stopped.pid);
        let view = found.context("the process has no ledger")?;
        equal(view, &books)?;
        launches(world, stopped.pid, view)?;
        Ok(format!(
            "{} B held, {} B peak, {} allocations",
            books.used(),
            books.peak,
            books.allocs
        ))
    };
    Cell::of(compare())
}

fn equal(view: &LedgerView, books: &Books) -> Result<()> {
    let gpu = view.gpus.first().context("no GPU in the ledger")?;
    let kinds = gpu
        .kinds
        .iter()
        .map(|k| (k.kind.as_str(), k.bytes))
        .collect::<Vec<_>>();
    let mut expected = books
        .kinds
        .iter()
        .map(|(kind, bytes)| (*kind, *bytes))
        .collect::<Vec<_>>();
    expected.sort_by_key(|(kind, _)| kinds.iter().position(|(k, _)| k == kind));
    ensure!(
        kinds == expected,
        "the ledger holds {kinds:?}, the driver {expected:?}"
    );
    ensure!(
        gpu.peak == books.peak,
        "peak: the ledger says {} B, the driver {} B",
        gpu.peak,
        books.peak
    );
    ensure!(
        gpu.allocs == books.allocs,
        "allocations: the ledger says {}, the driver {}",
        gpu.allocs,
        books.allocs
    );
    ensure!(
        gpu.inflight == 0,
        "{} B are in flight at a stop",
        gpu.inflight
    );
    ensure!(
        view.warning.is_none(),
        "the daemon doubts the ledger: {:?}",
        view.warning
    );
    Ok(())
}

/// Launches and copies are not in the journal, but counted by the simulator.
fn launches(world: &World, pid: u32, view: &LedgerView) -> Result<()> {
    let processes = world.machine.processes();
    let truth = processes
        .iter()
        .find(|p| p.pid == pid)
        .context("the process is gone")?;
    for (what, counted, true_count) in [
        ("kernel launches", view.kernels, truth.launches),
        ("graph launches", view.graphs, truth.graph_launches),
        ("copies", view.copies, truth.copies),
        ("memsets", view.memsets, truth.memsets),
    ] {
        ensure!(
            counted == true_count,
            "{what}: the ledger says {counted}, the driver {true_count}"
        );
    }
    Ok(())
}

/// A program that only looks must not become a process with memory.
fn no_ledger(stopped: &Stopped) -> Cell {
    let holds = stopped
        .inspection
        .processes
        .iter()
        .flat_map(|p| &p.gpus)
        .any(|gpu| gpu.allocs > 0);
    if holds {
        Cell::Failed("it allocates nothing, but its ledger says so".to_owned())
    } else {
        Cell::Passed("allocates nothing".to_owned())
    }
}

/// Refused by the shim, never by the driver, and told as the library tells it.
fn out_of_memory(client: &Client, stopped: &Stopped) -> Cell {
    if client.refusals == 0 {
        return Cell::NotTried;
    }
    let compare = || {
        let told: Vec<&str> = stopped
            .output
            .lines()
            .filter_map(|l| l.strip_prefix("OOM "))
            .collect();
        ensure!(
            told.len() as u64 == client.refusals,
            "it told of {} refusals: {told:?}",
            told.len()
        );
        let gpu = stopped.inspection.processes.iter().flat_map(|p| &p.gpus);
        let (mut denials, mut driver) = (0, 0);
        for gpu in gpu {
            denials += gpu.denials;
            driver += gpu.driver_ooms;
        }
        // A framework frees its cache and asks again.
        ensure!(
            denials >= client.refusals,
            "the ledger has {denials} denials"
        );
        ensure!(
            driver == 0,
            "the driver refused {driver}: the limit was not kept"
        );
        let first = told.first().copied().unwrap_or_default();
        let shown = if told.len() > 1 {
            "CUDA_ERROR_OUT_OF_MEMORY"
        } else {
            first.split(' ').next().unwrap_or(first)
        };
        Ok(format!("{shown}, {denials} denials"))
    };
    Cell::of(compare())
}

/// Lets the client go on, and looks how it ends.
fn finish(client: &Client, world: &World, gate: &Path, stopped: &Stopped) -> Result<String> {
    ensure!(
        stopped.output.contains(client.works),
        "no {:?} in its output: {}",
        client.works,
        stopped.output
    );
    let records = world.machine.journal_of(stopped.pid)?;
    let unsimulated = unsupported(&records);
    if let Program::Workload(_) = client.program {
        world.cancel(stopped.job)?;
        return Ok(String::new());
    }
    until("the client at the gate", || {
        match rustix::fs::open(
            gate,
            OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
            Mode::empty(),
        ) {
            Ok(_) => Ok(Some(())),
            Err(rustix::io::Errno::NXIO) => Ok(None),
            Err(error) => Err(error).context("gate"),
        }
    })?;
    let (view, outcome) = world.done(stopped.job)?;
    ensure!(
        outcome == Outcome::Ok,
        "{outcome:?}: {}",
        last_lines(&world.log_of(view.id, 1)?)
    );
    Ok(match unsimulated.as_slice() {
        [] => String::new(),
        names => format!("not simulated: {}", names.join(" ")),
    })
}

/// Calls that the simulated driver knows by name only.
fn unsupported(records: &[Record]) -> Vec<&str> {
    const NOT_SUPPORTED: i32 = 801;
    let mut names: Vec<&str> = records
        .iter()
        .filter(|record| record.result == NOT_SUPPORTED)
        .map(|record| record.call.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}
