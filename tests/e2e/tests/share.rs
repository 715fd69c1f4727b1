//! Sharing a GPU: who may, who may not, and that nobody is hurt.

use aegis_common::job::Outcome;
use anyhow::Result;
use e2e::{GIB, Setup, World};

fn light(world: &World, steps: u32, progress: &str) -> Vec<std::ffi::OsString> {
    world.workload(&[
        "recommender",
        "--startup",
        "0",
        "--epochs",
        "1",
        "--steps",
        &steps.to_string(),
        "--progress",
        progress,
    ])
}

#[test]
fn two_light_jobs_run_at_once_on_one_gpu() -> Result<()> {
    let world = World::start(Setup::gpus(1, 24 * GIB))?;
    let files = [world.file("a"), world.file("b")];
    let mut jobs = Vec::new();
    for file in &files {
        let command = light(&world, 100_000, &file.display().to_string());
        let job = world.submit(&["--gpu-mem", "3GiB"], &command)?;
        world.steady(job)?;
        jobs.push(job);
    }
    let gpus = world.gpus()?;
    assert_eq!(gpus[0].residents, jobs, "by seniority");
    // Both progress: the step counts grow.
    for file in &files {
        let before = e2e::read_progress(file)?.lines.len();
        e2e::until("further steps", || {
            Ok((e2e::read_progress(file)?.lines.len() > before + 3).then_some(()))
        })?;
    }
    Ok(())
}

#[test]
fn a_saturated_gpu_is_refused_with_the_numbers() -> Result<()> {
    let world = World::start(Setup::gpus(1, 24 * GIB))?;
    let command = world.workload(&[
        "transformer",
        "--startup",
        "0",
        "--saturate",
        "--epochs",
        "1000",
    ]);
    let busy = world.submit(&["--gpu-mem", "8GiB"], &command)?;
    world.steady(busy)?;
    let job = world.submit(&["--gpu-mem", "1GiB"], &["true"])?;
    let explanation = world.blocked(job, "pressure")?;
    let text = &explanation.blockers[0].text;
    assert!(text.contains("SM activity") && text.contains('%'), "{text}");
    assert_eq!(world.gpus()?[0].residents, [busy]);
    world.cancel(busy)?;
    assert_eq!(world.wait(job)?, 0);
    Ok(())
}

#[test]
fn an_exclusive_job_shares_with_nobody() -> Result<()> {
    let world = World::start(Setup::gpus(2, 24 * GIB))?;
    let alone = world.submit(
        &["--exclusive"],
        &world.workload(&["hold", "1GiB", "--launch"]),
    )?;
    world.said(alone, 1, "READY")?;
    world.steady(alone)?;
    let mut jobs = Vec::new();
    for _ in 0..2 {
        let job = world.submit(
            &["--gpu-mem", "2GiB"],
            &world.workload(&["hold", "1GiB", "--launch"]),
        )?;
        world.said(job, 1, "READY")?;
        world.steady(job)?;
        jobs.push(job);
    }
    let gpus = world.gpus()?;
    let shared: Vec<_> = gpus.iter().map(|g| g.residents.clone()).collect();
    assert!(shared.contains(&vec![alone]), "{shared:?}");
    assert!(shared.contains(&jobs), "{shared:?}");
    Ok(())
}

#[test]
fn the_placement_policy_decides_between_idle_gpus() -> Result<()> {
    for (policy, expected) in [("most-available-memory", 1), ("best-fit", 0)] {
        let mut setup = Setup::gpus(2, 16 * GIB).key("scheduler.placement", &format!("{policy:?}"));
        setup.machine.gpus[1].memory_bytes = 24 * GIB;
        let world = World::start(setup)?;
        e2e::until("a sample of each GPU", || {
            let gpus = world.gpus()?;
            let known = gpus.len() == 2 && gpus.iter().all(|gpu| gpu.sample_age_ms.is_some());
            Ok(known.then_some(()))
        })?;
        let job = world.submit(&["--gpu-mem", "2GiB"], &["true"])?;
        let (view, _) = world.done(job)?;
        assert_eq!(view.attempts[0].gpus[0].0, expected, "{policy}");
    }
    Ok(())
}

#[test]
fn an_older_jobs_growth_is_served_by_the_younger() -> Result<()> {
    // Invariant 4: a protected incumbent never pays for a newcomer.
    let world = World::start(Setup::gpus(1, 16 * GIB).key("jobs.default_requeue", "true"))?;
    let progress = world.file("old").display().to_string();
    let command = world.workload(&[
        "vision",
        "--startup",
        "0",
        "--epochs",
        "1",
        "--steps",
        "400",
        "--grow-at",
        "150",
        "--grow-bytes",
        "9GiB",
        "--progress",
        &progress,
    ]);
    let old = world.submit(&[], &command)?;
    world.steady(old)?;
    let young = world.submit(
        &["--gpu-mem", "4GiB", "--requeue"],
        &world.workload(&["hold", "4GiB", "--launch"]),
    )?;
    world.said(young, 1, "READY")?;
    let (view, outcome) = world.done(old)?;
    assert_eq!(outcome, Outcome::Ok, "{view:?}");
    assert_eq!(view.attempts.len(), 1, "{view:?}");
    let progress = e2e::read_progress(progress.as_ref())?;
    assert_eq!(progress.ooms(), 0, "the older job never saw a failed step");
    let young = world.view(young)?;
    assert!(young.evictions >= 1, "the younger made room: {young:?}");
    Ok(())
}

#[test]
fn a_stale_sample_closes_the_gpu() -> Result<()> {
    // Invariant 6: a missing, stale or NaN sample means "do not collocate", never "idle".
    use simgpu_core::fault::{Fault, FaultKind};
    for fault in [FaultKind::GpmNan, FaultKind::GpmStale, FaultKind::GpmMetric] {
        let world = World::start(Setup::gpus(1, 24 * GIB))?;
        let first = world.submit(
            &["--gpu-mem", "3GiB"],
            &world.workload(&["recommender", "--startup", "0", "--steps", "1000000"]),
        )?;
        world.steady(first)?;
        world.machine.faults().arm(Fault::new(fault, 999))?;
        e2e::until(
            &format!("the last valid sample is old under {fault:?}"),
            || {
                let age = world.gpus()?[0].sample_age_ms;
                Ok(age.is_none_or(|age| age > 2_000).then_some(()))
            },
        )?;
        let job = world.submit(&["--gpu-mem", "2GiB"], &["true"])?;
        world.blocked(job, "telemetry_stale")?;
        world.machine.faults().clear();
        assert_eq!(world.wait(job)?, 0, "{fault:?}");
    }
    Ok(())
}
