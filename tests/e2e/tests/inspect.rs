//! `aegis inspect`: the shared memory of a process, with the daemon and without it.

use aegis_common::wire::Inspection;
use anyhow::{Context, Result};
use e2e::{GIB, MIB, Setup, World};

fn holder() -> Result<(World, aegis_common::id::JobId, u32)> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(
        &[],
        &world.workload(&["hold", "1GiB", "--pieces", "4", "--launch"]),
    )?;
    let said = world.said(job, 1, "READY")?;
    let pid = said.split_whitespace().next().context("pid")?.parse()?;
    Ok((world, job, pid))
}

fn check(inspection: &Inspection, pid: u32) -> Result<()> {
    let view = inspection
        .processes
        .iter()
        .find(|view| view.process.pid == pid)
        .with_context(|| format!("{inspection:?}"))?;
    assert!(view.alive && view.launched);
    assert!(view.kernels >= 1, "{view:?}");
    let gpu = view.gpus.first().context("a GPU")?;
    assert_eq!(gpu.used, GIB, "{gpu:?}");
    assert_eq!(gpu.peak, GIB);
    assert_eq!(gpu.inflight, 0);
    assert_eq!(gpu.allocs, 4);
    assert_eq!(gpu.denials, 0);
    assert_eq!(gpu.kinds.iter().map(|k| k.bytes).sum::<u64>(), GIB);
    assert_eq!(view.warning, None);
    Ok(())
}

#[test]
fn the_ledger_says_exactly_what_was_allocated() -> Result<()> {
    let (world, job, pid) = holder()?;
    let inspection = world.inspect(job)?;
    assert!(inspection.daemon);
    check(&inspection, pid)?;
    let gpu = &inspection.processes[0].gpus[0];
    assert!(gpu.limit.is_some_and(|limit| limit >= GIB), "{gpu:?}");
    // The simulator knows what the process allocated, and what its context takes.
    let truth = world.machine.processes();
    let truth = truth.iter().find(|p| p.pid == pid).context("process")?;
    assert_eq!(truth.gpus[0].allocated_bytes, gpu.used);
    let by_pid: Inspection = world.json(&["inspect", &pid.to_string()])?;
    check(&by_pid, pid)
}

#[test]
fn it_works_with_the_daemon_dead() -> Result<()> {
    let (mut world, _, pid) = holder()?;
    world.take_daemon()?.kill()?;
    let inspection: Inspection = world.json(&["inspect", &pid.to_string()])?;
    assert!(!inspection.daemon);
    check(&inspection, pid)
}

#[test]
fn frees_are_counted_and_used_falls() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(
        &[],
        &world.workload(&[
            "vision",
            "--startup",
            "0",
            "--epochs",
            "1",
            "--steps",
            "100000",
        ]),
    )?;
    let view = e2e::until("frees", || {
        let inspection = world.inspect(job)?;
        let view = inspection.processes.into_iter().next();
        Ok(view.filter(|v| v.gpus.first().is_some_and(|g| g.used > 100 * MIB) && v.kernels > 100))
    })?;
    let gpu = &view.gpus[0];
    assert!(gpu.used <= gpu.peak && gpu.peak <= 16 * GIB, "{gpu:?}");
    assert!(gpu.allocs >= gpu.frees);
    assert!(view.copies > 0, "{view:?}");
    Ok(())
}

#[test]
fn an_unknown_process_is_an_error() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let answer = world.run(["inspect", "999999999"])?;
    assert_eq!(answer.code, 66, "{answer:?}");
    Ok(())
}
