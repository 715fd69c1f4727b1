//! Contract C3: leases bind until 30 s after the daemon is gone, then everything passes.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Result;
use e2e::{GIB, Lines, Setup, World};

#[test]
fn leases_bind_for_a_while_then_everything_passes() -> Result<()> {
    // Must show: dead daemon: C3.
    let mut world = World::start(Setup::gpus(1, 8 * GIB))?;
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        world.file("in"),
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )?;
    let script = format!(
        "exec {} race --chunk 256MiB < in > out",
        world.artifacts.workload.display()
    );
    let job = world.submit(&["--gpu-mem", "2GiB"], &["sh", "-c", &script])?;
    world.running(job)?;
    let mut orders = OpenOptions::new().write(true).open(world.file("in"))?;
    let mut output = Lines::follow(&world.file("out"))?;
    let mut got = |output: &mut Lines, number: usize| -> Result<u64> {
        writeln!(orders, "go")?;
        let count = std::cell::Cell::new(0);
        let line = output.wait("GOT", |line| {
            count.set(count.get() + usize::from(line.starts_with("GOT")));
            line.starts_with("GOT") && count.get() > number
        })?;
        Ok(line.trim_start_matches("GOT").trim().parse()?)
    };
    assert_eq!(got(&mut output, 0)?, 2 * GIB, "all that was declared");
    world.take_daemon()?.kill()?;
    let died = Instant::now();
    assert_eq!(got(&mut output, 1)?, 2 * GIB, "the lease still binds");
    let mut number = 2;
    loop {
        let now = got(&mut output, number)?;
        number += 1;
        if now > 2 * GIB {
            break;
        }
        assert!(
            died.elapsed() < Duration::from_secs(120),
            "never passed through"
        );
        std::thread::sleep(Duration::from_millis(500));
    }
    // Not a timing claim: it must not have passed while leases bind, 30 s from the last heartbeat,
    // which is at most 10 s older than the daemon's end.
    assert!(
        died.elapsed() >= Duration::from_secs(20),
        "{:?}",
        died.elapsed()
    );
    Ok(())
}

#[test]
fn a_job_within_its_lease_notices_nothing() -> Result<()> {
    let mut world = World::start(Setup::gpus(1, 16 * GIB))?;
    let progress = world.file("p");
    let command = world.workload(&[
        "vision",
        "--startup",
        "0",
        "--epochs",
        "3",
        "--steps",
        "40",
        "--progress",
        &progress.display().to_string(),
    ]);
    world.submit(&["--gpu-mem", "6GiB"], &command)?;
    // From then on it holds its peak and asks for no more.
    e2e::until("the first evaluation", || {
        let lines = e2e::read_progress(&progress)?.lines;
        Ok(lines.iter().any(|l| l.event == "eval").then_some(()))
    })?;
    world.take_daemon()?.kill()?;
    let done = e2e::until("the end", || {
        let progress = e2e::read_progress(&progress)?;
        Ok(progress.completed().then_some(progress))
    })?;
    assert_eq!(done.ooms(), 0);
    // And the daemon that comes back knows how it ended.
    world.start_daemon()?;
    assert_eq!(world.wait(aegis_common::id::JobId(1))?, 0);
    Ok(())
}

#[test]
fn a_new_daemon_enforces_the_lease_again() -> Result<()> {
    let mut world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(
        &["--gpu-mem", "4GiB"],
        &world.workload(&["hold", "3GiB", "--launch"]),
    )?;
    world.said(job, 1, "READY")?;
    world.steady(job)?;
    world.crash_and_restart()?;
    let view = world.view(job)?;
    assert_eq!(
        view.holdings[0].used,
        3 * GIB,
        "the ledger was adopted: {view:?}"
    );
    let gpu = &world.gpus()?[0];
    assert!(gpu.promised >= 4 * GIB, "the promise still stands: {gpu:?}");
    assert!(gpu.available <= 12 * GIB, "{gpu:?}");
    Ok(())
}
