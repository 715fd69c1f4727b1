//! `aegis cancel`: the whole tree goes, whatever it does to stay.

use anyhow::Result;
use e2e::{GIB, Setup, World, alive};

#[test]
fn the_whole_tree_is_gone_when_cancel_returns() -> Result<()> {
    // Must show: a job's whole tree gone after `cancel`: a child, a deaf one, one that left the
    // session and lost its parent, one with an empty environment, each holding GPU memory.
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(
        &[],
        &world.workload(&["spawn-tree", "--gpu-bytes", "256MiB"]),
    )?;
    let tree = world.said(job, 1, "TREE")?;
    let pids: Vec<u32> = tree
        .split_whitespace()
        .filter_map(|p| p.parse().ok())
        .collect();
    assert!(pids.len() >= 4, "{tree}");
    assert!(pids.iter().all(|pid| alive(*pid)));
    assert!(world.machine.gpu_usage()[0].used >= GIB / 2);
    world.cancel(job)?;
    let left: Vec<_> = pids.iter().filter(|pid| alive(**pid)).collect();
    assert!(left.is_empty(), "{left:?} of {tree} survived");
    assert_eq!(world.machine.gpu_usage()[0].used, 0, "memory is back");
    Ok(())
}

#[test]
fn descendants_left_behind_end_with_the_job() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(&[], &world.workload(&["spawn-tree", "--root-exits"]))?;
    let tree = world.said(job, 1, "TREE")?;
    world.wait(job)?;
    let left: Vec<u32> = tree
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .filter(|pid| alive(*pid))
        .collect();
    assert!(left.is_empty(), "{left:?} of {tree} survived");
    Ok(())
}

#[test]
fn sigterm_comes_first_and_gives_time_to_save() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB).key("jobs.grace", "\"30s\""))?;
    let progress = world.file("p");
    let command = world.workload(&[
        "vision",
        "--startup",
        "0",
        "--epochs",
        "1000",
        "--on-term",
        "checkpoint",
        "--progress",
        &progress.display().to_string(),
    ]);
    let job = world.submit(&[], &command)?;
    e2e::until("the first step", || {
        let lines = e2e::read_progress(&progress)?.lines;
        Ok(lines.iter().any(|l| l.event == "step").then_some(()))
    })?;
    world.cancel(job)?;
    let lines = e2e::read_progress(&progress)?.lines;
    assert_eq!(lines.last().map(|l| l.event.as_str()), Some("checkpoint"));
    let (_, outcome) = world.done(job)?;
    assert!(
        matches!(outcome, aegis_common::job::Outcome::Cancelled { .. }),
        "{outcome:?}"
    );
    Ok(())
}

#[test]
fn a_deaf_process_is_killed_after_the_grace() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB).key("jobs.grace", "\"200ms\""))?;
    let job = world.submit(&[], &world.workload(&["spin"]))?;
    let pid: u32 = world.said(job, 1, "READY")?.parse()?;
    world.cancel(job)?;
    assert!(!alive(pid));
    Ok(())
}

#[test]
fn a_waiting_job_never_starts() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let holder = world.submit(&["--exclusive"], &world.workload(&["hold", "1GiB"]))?;
    world.said(holder, 1, "READY")?;
    let mark = world.file("mark");
    let job = world.submit(&["--exclusive"], &["touch".as_ref(), mark.as_os_str()])?;
    world.cancel(job)?;
    world.cancel(holder)?;
    let (view, _) = world.done(job)?;
    assert!(view.attempts.is_empty(), "{view:?}");
    assert!(!mark.exists());
    Ok(())
}

#[test]
fn an_unknown_job_is_reported_and_the_others_end() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(&[], &["sleep", "1000"])?;
    world.running(job)?;
    let answer = world.run(["cancel", &job.to_string(), "99"])?;
    assert_eq!(answer.code, 66, "{answer:?}");
    assert!(answer.stderr.contains("99"), "{answer:?}");
    world.done(job)?;
    let again = world.run(["cancel", &job.to_string()])?;
    assert_eq!(again.code, 0, "over already is no obstacle: {again:?}");
    Ok(())
}

#[test]
fn the_time_limit_ends_a_job_like_a_cancellation() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(&["--time-limit", "1s"], &["sleep", "1000"])?;
    let (_, outcome) = world.done(job)?;
    assert_eq!(outcome, aegis_common::job::Outcome::Timeout);
    Ok(())
}
