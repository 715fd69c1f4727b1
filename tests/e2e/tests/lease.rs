//! Leases: what a process may hold, and that the sum never exceeds the GPU.

use aegis_common::job::Outcome;
use anyhow::{Context, Result};
use e2e::{GIB, MIB, Setup, World};

#[test]
fn a_declared_peak_is_a_limit() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let options = ["--gpu-mem", "2GiB", "--retries", "0"];
    let within = world.submit(&options, &world.workload(&["alloc-once", "1GiB"]))?;
    assert_eq!(world.wait(within)?, 0);
    let beyond = world.submit(&options, &world.workload(&["alloc-once", "3GiB"]))?;
    let (_, outcome) = world.done(beyond)?;
    assert!(matches!(outcome, Outcome::Oom { .. }), "{outcome:?}");
    // The driver had it: the refusal was the lease's.
    let records = world.machine.journal()?;
    let asked = records
        .iter()
        .any(|r| r.args.contains(&(3 * GIB).to_string()));
    assert!(!asked, "the request never reached the driver");
    Ok(())
}

#[test]
fn a_declared_peak_is_what_the_process_sees_as_the_gpus_total() -> Result<()> {
    // C10: only --gpu-mem virtualises totals.
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let oom = world.workload(&[
        "vision",
        "--startup",
        "0",
        "--steps",
        "5",
        "--weights",
        "6GiB",
    ]);
    let job = world.submit(&["--gpu-mem", "4GiB", "--retries", "0"], &oom)?;
    world.wait(job)?;
    let log = std::fs::read_to_string(world.log_of(job, 1)?)?;
    assert!(log.contains("total capacity of 4.00 GiB"), "{log}");
    let job = world.submit(
        &["--exclusive"],
        &world.workload(&[
            "vision",
            "--startup",
            "0",
            "--steps",
            "5",
            "--weights",
            "30GiB",
        ]),
    )?;
    world.wait(job)?;
    let log = std::fs::read_to_string(world.log_of(job, 1)?)?;
    assert!(
        log.contains("total capacity of 16.00 GiB") || log.contains("total capacity of 15.50 GiB"),
        "{log}"
    );
    Ok(())
}

#[test]
fn a_lease_grows_with_an_undeclared_job() -> Result<()> {
    let world = World::start(Setup::gpus(1, 24 * GIB))?;
    // First lease: an eighth of the GPU, 3 GiB. Needs 9.
    let job = world.submit(
        &[],
        &world.workload(&["hold", "9GiB", "--pieces", "36", "--launch"]),
    )?;
    world.said(job, 1, "READY")?;
    let view = world.view(job)?;
    assert!(view.holdings[0].lease >= 9 * GIB, "{view:?}");
    assert_eq!(view.attempts.len(), 1);
    let gpu = &world.gpus()?[0];
    assert!(
        gpu.promised + gpu.available + gpu.unmanaged + gpu.guard <= gpu.memory,
        "{gpu:?}"
    );
    Ok(())
}

#[test]
fn promises_never_exceed_the_gpu_while_jobs_fight_for_it() -> Result<()> {
    // Invariant 5, watched from outside while four undeclared jobs grow without end.
    let world = World::start(
        Setup::gpus(1, 16 * GIB)
            .key("scheduler.grow_wait", "\"200ms\"")
            .key("scheduler.observe_min", "\"0ms\""),
    )?;
    let mut jobs = Vec::new();
    for _ in 0..4 {
        jobs.push(world.submit(
            &["--retries", "1"],
            &world.workload(&[
                "recommender",
                "--startup",
                "0",
                "--loader-ms",
                "2",
                "--steps",
                "400",
                "--leak",
                "64MiB",
            ]),
        )?);
    }
    let mut samples = 0;
    while samples < 200 {
        let gpu = world.gpus()?.remove(0);
        assert!(
            gpu.promised + gpu.unmanaged + gpu.guard <= gpu.memory,
            "overbooked: {gpu:?}"
        );
        let truth = world.machine.gpu_usage()[0];
        assert!(truth.used <= truth.total - truth.reserved, "{truth:?}");
        samples += 1;
    }
    for job in jobs {
        world.cancel(job)?;
    }
    // The driver itself never had to refuse: the leases did it before.
    let refused = world
        .machine
        .journal()?
        .into_iter()
        .filter(|r| r.result == 2)
        .count();
    assert_eq!(refused, 0, "the driver ran out of memory");
    Ok(())
}

#[test]
fn a_freed_block_can_be_promised_again() -> Result<()> {
    let world = World::start(Setup::gpus(1, 8 * GIB))?;
    let first = world.submit(
        &[],
        &world.workload(&["hold", "5GiB", "--pieces", "20", "--launch"]),
    )?;
    world.said(first, 1, "READY")?;
    world.cancel(first)?;
    let second = world.submit(
        &["--gpu-mem", "6GiB"],
        &world.workload(&["alloc-once", "6000MiB"]),
    )?;
    assert_eq!(world.wait(second)?, 0);
    Ok(())
}

#[test]
fn refusals_are_counted_where_inspect_shows_them() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let script = format!(
        "{0} alloc-once 3GiB; exec {0} hold 256MiB",
        world.artifacts.workload.display()
    );
    let job = world.submit(&["--gpu-mem", "2GiB"], &["sh", "-c", &script])?;
    world.said(job, 1, "READY")?;
    let inspection = world.inspect(job)?;
    let holder = inspection
        .processes
        .iter()
        .find(|p| p.alive && !p.gpus.is_empty());
    let gpu = holder.context("the holder")?.gpus.first().context("GPU")?;
    assert_eq!(gpu.used, 256 * MIB);
    let explanation = world.run(["explain", &job.to_string()])?;
    assert!(
        explanation.stdout.contains("3.00 GiB"),
        "the refusal is explained: {explanation:?}"
    );
    Ok(())
}
