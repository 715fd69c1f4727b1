//! Running out of GPU memory: what is retried, with what, and what is final.

use aegis_common::job::{OomFinal, Outcome};
use aegis_common::reason::RetryReason;
use anyhow::Result;
use e2e::{GIB, Setup, World, kill};
use rustix::process::Signal;

/// Grows by 5 GiB at step 10, beyond what is left beside a holder of 6 GiB on a GPU of 12.
fn growing(world: &World, progress: &str) -> Vec<std::ffi::OsString> {
    world.workload(&[
        "vision",
        "--startup",
        "0.1",
        "--epochs",
        "1",
        "--steps",
        "30",
        "--grow-at",
        "10",
        "--grow-bytes",
        "5GiB",
        "--progress",
        progress,
    ])
}

#[test]
fn an_oom_is_recovered_with_a_higher_floor_and_the_neighbour_never_notices() -> Result<()> {
    let world = World::start(Setup::gpus(1, 12 * GIB))?;
    let neighbour = world.submit(
        &["--gpu-mem", "6GiB"],
        &world.workload(&["hold", "6GiB", "--launch"]),
    )?;
    world.said(neighbour, 1, "READY")?;
    world.steady(neighbour)?;
    let progress = world.file("p").display().to_string();
    let job = world.submit(&[], &growing(&world, &progress))?;
    let view = world.reach(job, "has failed once", |view| {
        view.attempts.first().is_some_and(|a| a.retried.is_some())
    })?;
    let retried = view.attempts[0].retried.clone();
    let Some(RetryReason::Oom {
        request,
        peak,
        floor,
        ..
    }) = retried
    else {
        panic!("{retried:?}");
    };
    assert!(request > 0 && peak > GIB, "{view:?}");
    assert!(floor >= peak + request, "{view:?}");
    // It waits for its floor: it cannot start beside the neighbour, whose job goes on.
    let blocked = world.blocked(job, "gpu_memory")?;
    assert!(
        blocked
            .history
            .iter()
            .any(|line| line.contains("out of memory")),
        "{blocked:?}"
    );
    let neighbours = world.view(neighbour)?;
    assert_eq!(neighbours.attempts.len(), 1, "{neighbours:?}");
    world.cancel(neighbour)?;
    assert_eq!(world.wait(job)?, 0);
    let progress = e2e::read_progress(progress.as_ref())?;
    assert!(progress.completed());
    assert!(progress.ooms() >= 1, "memory really ran out");
    let attempts = progress.attempts();
    assert_eq!(
        attempts,
        (1..=attempts.len())
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
    );
    Ok(())
}

#[test]
fn a_waiting_retry_stalls_nobody() -> Result<()> {
    let world = World::start(Setup::gpus(1, 12 * GIB))?;
    let neighbour = world.submit(
        &["--gpu-mem", "6GiB"],
        &world.workload(&["hold", "6GiB", "--launch"]),
    )?;
    world.said(neighbour, 1, "READY")?;
    world.steady(neighbour)?;
    let job = world.submit(
        &[],
        &growing(&world, &world.file("p").display().to_string()),
    )?;
    world.reach(job, "has failed once", |view| {
        view.attempts.first().is_some_and(|a| a.retried.is_some())
    })?;
    world.blocked(job, "gpu_memory")?;
    let small = world.submit(
        &["--gpu-mem", "1GiB"],
        &world.workload(&["alloc-once", "512MiB"]),
    )?;
    assert_eq!(world.wait(small)?, 0);
    world.blocked(job, "gpu_memory")?;
    Ok(())
}

#[test]
fn more_than_the_gpu_has_is_final_and_says_so() -> Result<()> {
    let world = World::start(Setup::gpus(1, 8 * GIB))?;
    let job = world.submit(&[], &world.workload(&["alloc-once", "20GiB"]))?;
    let (view, outcome) = world.done(job)?;
    assert_eq!(view.attempts.len(), 1, "{view:?}");
    let Outcome::Oom { why, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(why, OomFinal::ExceedsCapacity);
    let text = world.run(["explain", &job.to_string()])?;
    assert!(text.stdout.contains("20.00 GiB"), "{text:?}");
    Ok(())
}

#[test]
fn an_oom_alone_on_the_gpu_is_final() -> Result<()> {
    let world = World::start(Setup::gpus(1, 8 * GIB))?;
    let command = world.workload(&[
        "vision",
        "--startup",
        "0",
        "--steps",
        "100",
        "--leak",
        "256MiB",
    ]);
    let job = world.submit(&["--exclusive"], &command)?;
    let (_, outcome) = world.done(job)?;
    assert!(matches!(outcome, Outcome::Oom { .. }), "{outcome:?}");
    Ok(())
}

#[test]
fn without_retries_the_first_oom_is_the_last() -> Result<()> {
    let world = World::start(Setup::gpus(1, 12 * GIB))?;
    let neighbour = world.submit(
        &["--gpu-mem", "6GiB"],
        &world.workload(&["hold", "6GiB", "--launch"]),
    )?;
    world.said(neighbour, 1, "READY")?;
    world.steady(neighbour)?;
    let job = world.submit(
        &["--retries", "0"],
        &growing(&world, &world.file("p").display().to_string()),
    )?;
    let (view, outcome) = world.done(job)?;
    assert_eq!(view.attempts.len(), 1);
    let Outcome::Oom { why, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(why, OomFinal::NoRetriesLeft);
    Ok(())
}

#[test]
fn a_batch_size_finder_that_recovers_has_not_failed() -> Result<()> {
    // C5: denials that the program itself recovers from are no OOM.
    let world = World::start(Setup::gpus(1, 8 * GIB))?;
    let job = world.submit(&[], &world.workload(&["batch-finder"]))?;
    let (view, outcome) = world.done(job)?;
    assert_eq!(outcome, Outcome::Ok);
    assert_eq!(view.attempts.len(), 1, "{view:?}");
    let log = std::fs::read_to_string(world.log_of(job, 1)?)?;
    assert!(log.contains("OOM, recovering"), "{log}");
    Ok(())
}

#[test]
fn a_failure_after_recovery_is_no_oom() -> Result<()> {
    let world = World::start(Setup::gpus(1, 8 * GIB))?;
    let script = format!(
        "{} batch-finder && exit 9",
        world.artifacts.workload.display()
    );
    let job = world.submit(&[], &["sh", "-c", &script])?;
    let (view, outcome) = world.done(job)?;
    assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
    assert_eq!(view.attempts.len(), 1, "{view:?}");
    Ok(())
}

#[test]
fn a_killed_process_gives_its_memory_back_at_once() -> Result<()> {
    // Must show: SIGKILLed process gives its memory back at once.
    let world = World::start(Setup::gpus(1, 12 * GIB))?;
    let holder = world.submit(
        &["--gpu-mem", "8GiB"],
        &world.workload(&["hold", "8GiB", "--launch"]),
    )?;
    let said = world.said(holder, 1, "READY")?;
    let pid: u32 = said.split_whitespace().next().unwrap_or_default().parse()?;
    world.steady(holder)?;
    let next = world.submit(
        &["--gpu-mem", "8GiB"],
        &world.workload(&["alloc-once", "8GiB"]),
    )?;
    world.blocked(next, "gpu_memory")?;
    kill(pid, Signal::KILL);
    assert_eq!(world.wait(holder)?, 128 + 9);
    assert_eq!(world.wait(next)?, 0, "the next job got the memory");
    Ok(())
}
