//! `aegis wait`: the job's exit code, also when the job is over already.

use aegis_common::id::JobId;
use anyhow::Result;
use e2e::{GIB, Setup, World};

#[test]
fn the_exit_code_is_the_jobs() -> Result<()> {
    let world = World::start(Setup::gpus(2, 16 * GIB))?;
    let job = world.submit(&[], &["sh", "-c", "exit 42"])?;
    assert_eq!(world.wait(job)?, 42);
    assert_eq!(world.wait(job)?, 42, "again, after the end");
    Ok(())
}

#[test]
fn of_several_jobs_the_first_failure_counts() -> Result<()> {
    let world = World::start(Setup::gpus(2, 16 * GIB))?;
    let good = world.submit(&[], &["true"])?;
    let bad = world.submit(&[], &["sh", "-c", "exit 3"])?;
    let both = world.run(["wait", &good.to_string(), &bad.to_string()])?;
    assert_eq!(both.code, 3, "{both:?}");
    let fine = world.run(["wait", &good.to_string()])?;
    assert_eq!(fine.code, 0, "{fine:?}");
    Ok(())
}

#[test]
fn waiting_ends_when_the_job_is_cancelled() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(&[], &["sleep", "1000"])?;
    world.running(job)?;
    let mut waiter = world.aegis().args(["wait", &job.to_string()]).spawn()?;
    world.cancel(job)?;
    assert_ne!(waiter.wait()?.code(), Some(0));
    Ok(())
}

#[test]
fn an_unknown_job_is_an_error() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    assert_eq!(world.wait(JobId(9))?, 66);
    Ok(())
}
