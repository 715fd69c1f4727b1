//! `aegis explain`: every blocker with numbers and the act that clears it; the act, performed, lets
//! the job start.
//!
//! One test per code of [`BLOCKER_CODES`]; `every_code_has_its_test` keeps the list complete.

use aegis_common::id::JobId;
use aegis_common::reason::BLOCKER_CODES;
use aegis_common::wire::Explanation;
use anyhow::Result;
use e2e::{GIB, Setup, World};
use simgpu_core::fault::{Fault, FaultKind};

/// The codes below, each the name of a test.
const TESTED: [&str; 18] = [
    "not_enough_gpus",
    "gpu_memory",
    "pressure",
    "interference",
    "observing",
    "telemetry_stale",
    "no_telemetry",
    "held_exclusively",
    "needs_idle_gpu",
    "uninstrumented",
    "unprotected_incumbent",
    "max_residents",
    "foreign_process",
    "overdraft",
    "gpu_lost",
    "reserved",
    "behind",
    "journal_unwritable",
];

#[test]
fn every_code_has_its_test() {
    let mut codes = BLOCKER_CODES.to_vec();
    let mut tested = TESTED.to_vec();
    codes.sort_unstable();
    tested.sort_unstable();
    assert_eq!(codes, tested);
    let source = include_str!("explain.rs");
    for code in TESTED {
        assert!(
            source.contains(&format!("\nfn {code}() -> Result<()> {{\n")),
            "no test {code}"
        );
    }
}

/// Checks the words of an explanation: each blocker has a text with a number and a way out.
fn check(explanation: &Explanation) {
    assert!(!explanation.blockers.is_empty());
    for blocker in &explanation.blockers {
        // Only a full disk has no numbers.
        assert!(
            blocker.blocker.code() == "journal_unwritable"
                || blocker.text.contains(|c: char| c.is_ascii_digit()),
            "{blocker:?}"
        );
        assert!(blocker.clears.starts_with("clears "), "{blocker:?}");
    }
    let order: Vec<_> = explanation
        .blockers
        .iter()
        .map(|b| {
            BLOCKER_CODES
                .iter()
                .position(|code| *code == b.blocker.code())
        })
        .collect();
    assert!(order.is_sorted(), "{order:?}");
}

/// Waits for the blocker, checks its words, performs the act, and waits until the job has run.
fn clears(
    world: &mut World,
    job: JobId,
    code: &str,
    act: impl FnOnce(&mut World) -> Result<()>,
) -> Result<()> {
    check(&world.blocked(job, code)?);
    let text = world.run(["explain", &job.to_string()])?;
    assert!(text.stdout.contains("clears "), "{text:?}");
    act(world)?;
    world.wait(job)?;
    let view = world.view(job)?;
    assert!(!view.attempts.is_empty(), "it started: {view:?}");
    Ok(())
}

/// A world of GPUs of 16 GiB whose GPU 0 holds a steady job of 2 GiB.
fn occupied(setup: Setup, options: &[&str]) -> Result<(World, JobId)> {
    let world = World::start(setup)?;
    let job = world.submit(options, &world.workload(&["hold", "2GiB", "--launch"]))?;
    world.said(job, 1, "READY")?;
    Ok((world, job))
}

#[test]
fn not_enough_gpus() -> Result<()> {
    let (mut world, holder) = occupied(Setup::gpus(2, 16 * GIB), &["--exclusive"])?;
    let job = world.submit(&["--gpus", "2"], &["true"])?;
    clears(&mut world, job, "not_enough_gpus", |world| {
        world.cancel(holder)
    })
}

#[test]
fn gpu_memory() -> Result<()> {
    let (mut world, holder) = occupied(Setup::gpus(1, 16 * GIB), &["--gpu-mem", "10GiB"])?;
    world.steady(holder)?;
    let job = world.submit(&["--gpu-mem", "10GiB"], &["true"])?;
    let explanation = world.blocked(job, "gpu_memory")?;
    assert!(
        explanation.blockers.iter().any(|b| b.text.contains("10.")),
        "{explanation:?}"
    );
    clears(&mut world, job, "gpu_memory", |world| world.cancel(holder))
}

#[test]
fn pressure() -> Result<()> {
    let mut world = World::start(Setup::gpus(1, 16 * GIB))?;
    let command = world.workload(&["vision", "--startup", "0", "--saturate", "--epochs", "1000"]);
    let busy = world.submit(&["--gpu-mem", "5GiB"], &command)?;
    world.steady(busy)?;
    let job = world.submit(&["--gpu-mem", "1GiB"], &["true"])?;
    clears(&mut world, job, "pressure", |world| world.cancel(busy))
}

#[test]
fn interference() -> Result<()> {
    // A newcomer that fills most of 40 GiB would slow the resident by more than it works itself,
    // so no weight of slowdown against work admits it.
    let setup = Setup::gpus(1, 48 * GIB).key("scheduler.mode", "\"gentle\"");
    let mut world = World::start(setup)?;
    let command = world.workload(&["vision", "--startup", "0", "--saturate", "--epochs", "1000"]);
    let busy = world.submit(&["--gpu-mem", "5GiB"], &command)?;
    world.steady(busy)?;
    let job = world.submit(&["--gpu-mem", "36GiB"], &["true"])?;
    clears(&mut world, job, "interference", |world| world.cancel(busy))
}

#[test]
fn observing() -> Result<()> {
    // Nothing has to be done: the observation ends by itself.
    let setup = Setup::gpus(1, 16 * GIB).key("scheduler.observe_min", "\"3s\"");
    let (mut world, _) = occupied(setup, &["--gpu-mem", "3GiB"])?;
    let job = world.submit(&["--gpu-mem", "3GiB"], &["true"])?;
    clears(&mut world, job, "observing", |_| Ok(()))
}

#[test]
fn telemetry_stale() -> Result<()> {
    let (mut world, holder) = occupied(Setup::gpus(1, 16 * GIB), &["--gpu-mem", "3GiB"])?;
    world.steady(holder)?;
    world
        .machine
        .faults()
        .arm(Fault::new(FaultKind::GpmNan, 0))?;
    e2e::until("the last valid sample is old", || {
        let age = world.gpus()?[0].sample_age_ms;
        Ok(age.is_none_or(|age| age > 2_000).then_some(()))
    })?;
    let job = world.submit(&["--gpu-mem", "3GiB"], &["true"])?;
    clears(&mut world, job, "telemetry_stale", |world| {
        world.machine.faults().clear();
        Ok(())
    })
}

#[test]
fn no_telemetry() -> Result<()> {
    let setup = Setup::gpus(1, 16 * GIB).each_gpu(|gpu| gpu.supports_gpm = false);
    let mut world = World::prepare(setup)?;
    world
        .machine
        .faults()
        .arm(Fault::new(FaultKind::NvmlUtilization, 3))?;
    world.start_daemon()?;
    let holder = world.submit(
        &["--gpu-mem", "3GiB"],
        &world.workload(&["hold", "2GiB", "--launch"]),
    )?;
    world.said(holder, 1, "READY")?;
    let job = world.submit(&["--gpu-mem", "3GiB"], &["true"])?;
    clears(&mut world, job, "no_telemetry", |world| {
        world.cancel(holder)
    })
}

#[test]
fn held_exclusively() -> Result<()> {
    let (mut world, holder) = occupied(Setup::gpus(1, 16 * GIB), &["--exclusive"])?;
    let job = world.submit(&["--gpu-mem", "1GiB"], &["true"])?;
    clears(&mut world, job, "held_exclusively", |world| {
        world.cancel(holder)
    })
}

#[test]
fn needs_idle_gpu() -> Result<()> {
    let (mut world, holder) = occupied(Setup::gpus(1, 16 * GIB), &["--gpu-mem", "3GiB"])?;
    let job = world.submit(&["--exclusive"], &["true"])?;
    clears(&mut world, job, "needs_idle_gpu", |world| {
        world.cancel(holder)
    })
}

#[test]
fn uninstrumented() -> Result<()> {
    let mut world = World::start(Setup::gpus(1, 16 * GIB))?;
    let script = format!(
        "AEGIS_SHIM_DISABLE=1 exec {} hold 2GiB --launch",
        world.artifacts.workload.display()
    );
    let holder = world.submit(&["--gpu-mem", "3GiB"], &["sh", "-c", &script])?;
    world.said(holder, 1, "READY")?;
    let job = world.submit(&["--gpu-mem", "3GiB"], &["true"])?;
    clears(&mut world, job, "uninstrumented", |world| {
        world.cancel(holder)
    })
}

#[test]
fn unprotected_incumbent() -> Result<()> {
    // The resident's peak is not declared and not yet learned, and the newcomer may not be stopped.
    let setup = Setup::gpus(1, 16 * GIB).key("scheduler.observe_min", "\"3s\"");
    let (mut world, holder) = occupied(setup, &[])?;
    let evictable = world.submit(&["--gpu-mem", "3GiB", "--requeue"], &["true"])?;
    let job = world.submit(&["--gpu-mem", "3GiB", "--no-requeue"], &["true"])?;
    let explanation = world.blocked(job, "unprotected_incumbent")?;
    let words = |e: &Explanation| e.blockers.iter().any(|b| b.clears.contains("--requeue"));
    assert!(words(&explanation), "{explanation:?}");
    let other = world.blocked(evictable, "observing")?;
    assert!(
        !words(&other),
        "an evictable job has no such obstacle: {other:?}"
    );
    clears(&mut world, job, "unprotected_incumbent", |world| {
        world.steady(holder)?;
        Ok(())
    })
}

#[test]
fn max_residents() -> Result<()> {
    let setup = Setup::gpus(1, 16 * GIB).key("scheduler.max_residents", "1");
    let (mut world, holder) = occupied(setup, &["--gpu-mem", "3GiB"])?;
    world.steady(holder)?;
    let job = world.submit(&["--gpu-mem", "3GiB"], &["true"])?;
    clears(&mut world, job, "max_residents", |world| {
        world.cancel(holder)
    })
}

#[test]
fn foreign_process() -> Result<()> {
    let mut world = World::start(Setup::gpus(1, 16 * GIB))?;
    let mut outside = world.outside(&world.workload(&["hold", "1GiB"])).spawn()?;
    e2e::until("the foreign process is seen", || {
        Ok((!world.gpus()?[0].foreign.is_empty()).then_some(()))
    })?;
    let job = world.submit(&["--gpu-mem", "3GiB"], &["true"])?;
    clears(&mut world, job, "foreign_process", |_| {
        outside.kill()?;
        outside.wait()?;
        Ok(())
    })
}

#[test]
fn overdraft() -> Result<()> {
    // Contexts of 3 GiB where 512 MiB are reserved: growth that nobody can deny.
    let setup = Setup::gpus(1, 16 * GIB).each_gpu(|gpu| gpu.context_bytes = 3 * GIB);
    let mut world = World::start(setup)?;
    let options = ["--gpu-mem", "13GiB", "--no-requeue"];
    let holder = world.submit(&options, &world.workload(&["hold", "2GiB", "--launch"]))?;
    world.said(holder, 1, "READY")?;
    let job = world.submit(&["--gpu-mem", "1GiB"], &["true"])?;
    clears(&mut world, job, "overdraft", |world| world.cancel(holder))
}

#[test]
fn gpu_lost() -> Result<()> {
    let (mut world, holder) = occupied(Setup::gpus(1, 16 * GIB), &["--exclusive"])?;
    let job = world.submit(&["--gpu-mem", "1GiB"], &["true"])?;
    world.blocked(job, "held_exclusively")?;
    world
        .machine
        .faults()
        .arm(Fault::new(FaultKind::NvmlDevice, 15))?;
    world.blocked(job, "gpu_lost")?;
    // No GPU is left: a new job is refused at once, not left waiting.
    let refused = world.try_submit(&[], &["true"])?;
    assert_eq!(refused.code, 67, "{refused:?}");
    clears(&mut world, job, "gpu_lost", |world| {
        world.machine.faults().clear();
        world.cancel(holder)
    })
}

#[test]
fn reserved() -> Result<()> {
    let setup = Setup::gpus(2, 16 * GIB).key("scheduler.reserve_after", "\"0ms\"");
    let (mut world, holder) = occupied(setup, &["--exclusive"])?;
    let head = world.submit(&["--gpus", "2", "--exclusive"], &["sleep", "1000"])?;
    world.blocked(head, "not_enough_gpus")?;
    // Not evictable and without time limit: it could delay the head.
    let job = world.submit(&["--gpu-mem", "1GiB", "--no-requeue"], &["true"])?;
    let explanation = world.blocked(job, "reserved")?;
    check(&explanation);
    clears(&mut world, job, "reserved", |world| {
        world.cancel(holder)?;
        world.running(head)?;
        world.cancel(head)
    })
}

#[test]
fn behind() -> Result<()> {
    // A job that fits starts at once, unless nothing may start: the disk is full, the GPU idle.
    let Some(disk) = e2e::SmallDisk::mount(&e2e::SmallDisk::place()?, 8 << 20)? else {
        e2e::skip!("needs root to mount a small file system");
    };
    let setup = Setup::gpus(1, 16 * GIB).key("daemon.state_dir", &format!("{:?}", disk.path()));
    let mut world = World::start(setup)?;
    let go = world.file("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.05; done", go.display());
    let holder = world.submit(&["--exclusive"], &["sh", "-c", &script])?;
    world.running(holder)?;
    let first = world.submit(&["--exclusive"], &["true"])?;
    let job = world.submit(&["--exclusive"], &["true"])?;
    let filler = disk.fill()?;
    assert_eq!(world.try_submit(&[], &["true"])?.code, 74);
    std::fs::write(&go, "")?;
    let explanation = world.blocked(job, "behind")?;
    let text = explanation
        .blockers
        .iter()
        .map(|b| b.text.as_str())
        .collect::<String>();
    assert!(text.contains(&format!("job {first}")), "{text}");
    clears(&mut world, job, "behind", |world| {
        std::fs::remove_file(filler)?;
        world.wait(first)?;
        Ok(())
    })
}

#[test]
fn journal_unwritable() -> Result<()> {
    let Some(disk) = e2e::SmallDisk::mount(&e2e::SmallDisk::place()?, 8 << 20)? else {
        e2e::skip!("needs root to mount a small file system");
    };
    let setup = Setup::gpus(1, 16 * GIB).key("daemon.state_dir", &format!("{:?}", disk.path()));
    let (mut world, holder) = occupied(setup, &["--exclusive"])?;
    let job = world.submit(&["--gpu-mem", "1GiB"], &["true"])?;
    world.blocked(job, "held_exclusively")?;
    let filler = disk.fill()?;
    // The next durable event finds the disk full.
    let refused = world.try_submit(&[], &["true"])?;
    assert_eq!(refused.code, 74, "{refused:?}");
    clears(&mut world, job, "journal_unwritable", |world| {
        std::fs::remove_file(filler)?;
        world.cancel(holder)
    })
}
