//! A daemon with 10,000 pending jobs: what one more submission, the list, and its memory cost.

use std::path::Path;
use std::process::Stdio;

use aegis_common::job::Resources;
use anyhow::{Context, Result, bail};
use e2e::{GIB, Setup, World};

use crate::client::{Client, resources, submission};
use crate::fleet::{self, JOBS};
use crate::host::{now_ns, status_field};
use crate::latency::{make_gate, stamp_program};
use crate::report::Figure;
use crate::stats::{Stats, ms};

/// GPUs of the machine; each is held by a job that does not end.
const GPUS: u64 = 8;
/// Submissions that are timed once the queue is long.
const SUBMITS: u64 = 200;
/// Times each list is asked for.
const LISTS: usize = 15;

/// Measures.
///
/// # Errors
/// The daemon did not start or did not take the jobs.
pub(crate) fn measure() -> Result<Vec<Figure>> {
    let mut world = World::start(Setup::plain(usize::try_from(GPUS)?, 80 * GIB))?;
    let mut client = Client::connect(&world.socket())?;
    occupy(&world, &mut client)?;
    for number in 1..=JOBS {
        client.submit(pending(&world, number))?;
    }
    let rss_kib = rss_kib(world.daemon()?.pid())?;
    let submits = submits(&world, &mut client)?;
    let cli = cli_submits(&world)?;
    let table = lists(&world, &["queue", "--all"])?;
    let json = lists(&world, &["queue", "--all", "--json"])?;
    let worse = if table.median > json.median {
        table
    } else {
        json
    };
    let peak_kib = status_field(&status(world.daemon()?.pid()), "VmHWM").context("VmHWM")?;
    Ok(vec![
        Figure::new(
            "submit_ms_at_10k_pending",
            "one request on an open connection, answered once the job is on disk",
            Some(5.0),
            submits,
        ),
        Figure::new(
            "cli_submit_ms_at_10k_pending",
            "`aegis submit`, executed and ended",
            None,
            cli,
        ),
        Figure::new(
            "list_10k_ms",
            "`aegis queue --all`, executed and ended: the worse of the next two",
            Some(50.0),
            worse,
        ),
        Figure::new("list_10k_table_ms", "as a table", None, table),
        Figure::new("list_10k_json_ms", "as JSON", None, json),
        Figure::new(
            "daemon_rss_mb_10k",
            "resident memory of aegisd, MB, after the 10,000th submission",
            Some(60.0),
            once(megabytes(rss_kib))?,
        ),
        Figure::new(
            "daemon_rss_peak_mb_10k",
            "the most it ever was, listing included",
            None,
            once(megabytes(peak_kib))?,
        ),
    ])
}

/// Gives each GPU to a job that runs until the world ends.
fn occupy(world: &World, client: &mut Client) -> Result<()> {
    let gate = world.file("gate");
    make_gate(&gate)?;
    let stamp = stamp_program()?;
    for number in 0..GPUS {
        let [started, ended] = ["started", "ended"].map(|name| format!("{name}-{number}"));
        let command = [&stamp, &world.file(&started), &gate, &world.file(&ended)];
        let command = command.map(|word| word.display().to_string());
        let exclusive = Resources {
            exclusive: true,
            ..resources()
        };
        let job = client.submit(submission(exclusive, &command, world.path()))?;
        world.running(job.id)?;
    }
    Ok(())
}

fn pending(world: &World, number: u64) -> aegis_common::wire::Submit {
    submission(fleet::demand(number), &fleet::command(number), world.path())
}

fn submits(world: &World, client: &mut Client) -> Result<Stats> {
    let mut took = Vec::new();
    for number in 0..SUBMITS {
        let submit = pending(world, JOBS + number);
        let from = now_ns();
        let job = client.submit(submit)?;
        took.push(ms(now_ns() - from));
        // The queue stays as long as it is said to be.
        client.cancel(job.id)?;
    }
    Stats::of(took).context("no submission")
}

fn cli_submits(world: &World) -> Result<Stats> {
    let mut took = Vec::new();
    let mut client = Client::connect(&world.socket())?;
    for _ in 0..LISTS {
        let from = now_ns();
        let job = world.submit(&["--gpus", "2"], &["true", "--seed", "1"])?;
        took.push(ms(now_ns() - from));
        client.cancel(job)?;
    }
    Stats::of(took).context("no submission")
}

/// Runs `aegis` to its end; every byte of its output is read.
fn lists(world: &World, arguments: &[&str]) -> Result<Stats> {
    let mut took = Vec::new();
    for _ in 0..LISTS {
        let from = now_ns();
        let output = world
            .aegis()
            .args(arguments)
            .stderr(Stdio::inherit())
            .output()?;
        took.push(ms(now_ns() - from));
        if !output.status.success() {
            bail!("aegis {arguments:?} ended with {}", output.status);
        }
        let lines = output.stdout.split(|byte| *byte == b'\n').count();
        if u64::try_from(lines)? < JOBS {
            bail!("aegis {arguments:?} printed {lines} lines");
        }
    }
    Stats::of(took).context("no list")
}

fn status(pid: u32) -> std::path::PathBuf {
    Path::new("/proc").join(pid.to_string()).join("status")
}

fn rss_kib(pid: u32) -> Result<u64> {
    status_field(&status(pid), "VmRSS").context("VmRSS of aegisd")
}

#[expect(
    clippy::cast_precision_loss,
    reason = "kibibytes of a process are far below 2^53"
)]
fn megabytes(kib: u64) -> f64 {
    kib as f64 * 1024.0 / 1e6
}

fn once(value: f64) -> Result<Stats> {
    Stats::of(vec![value]).context("one value is some")
}
