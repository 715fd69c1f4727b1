//! A root daemon runs each job as its submitter.

use std::os::unix::process::CommandExt;

use aegis_common::id::JobId;
use anyhow::{Context, Result};
use e2e::{Answer, GIB, Setup, World};

const NOBODY: u32 = 65_534;
const SOMEBODY: u32 = 54_321;

fn world() -> Result<Option<World>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let mut setup = Setup::gpus(1, 16 * GIB);
    setup.rootless = false;
    Ok(Some(World::start(setup)?))
}

fn run_as(world: &World, uid: u32, arguments: &[&str]) -> Result<Answer> {
    let output = world
        .aegis()
        .current_dir("/")
        .args(arguments)
        .uid(uid)
        .gid(uid)
        .output()
        .context("starting aegis")?;
    Ok(output.into())
}

fn submit_as(world: &World, uid: u32, command: &[&str]) -> Result<JobId> {
    let arguments = [&["submit", "--json", "--"], command].concat();
    let answer = run_as(world, uid, &arguments)?;
    assert_eq!(answer.code, 0, "{answer:?}");
    let value: serde_json::Value = serde_json::from_str(&answer.stdout)?;
    let id = value.pointer("/job/id").or_else(|| value.get("id"));
    Ok(JobId(id.and_then(serde_json::Value::as_u64).context("id")?))
}

#[test]
fn a_job_runs_as_its_submitter() -> Result<()> {
    let Some(world) = world()? else {
        e2e::skip!("needs root");
    };
    let script = "echo \"I am $(id -u) $(id -g) $(id -G)\"; grep -E '^(CapEff|NoNewPrivs)' /proc/self/status";
    let job = submit_as(&world, NOBODY, &["sh", "-c", script])?;
    assert_eq!(world.wait(job)?, 0);
    let log = std::fs::read_to_string(world.log_of(job, 1)?)?;
    assert!(
        log.starts_with(&format!("I am {NOBODY} {NOBODY} {NOBODY}\n")),
        "{log}"
    );
    assert!(log.contains("CapEff:\t0000000000000000"), "{log}");
    assert_eq!(world.view(job)?.uid, NOBODY);
    Ok(())
}

#[test]
fn owners_and_admins_act_others_read() -> Result<()> {
    let Some(world) = world()? else {
        e2e::skip!("needs root");
    };
    let job = submit_as(&world, NOBODY, &["sleep", "1000"])?;
    world.running(job)?;
    let id = job.to_string();
    for verb in ["status", "explain"] {
        let answer = run_as(&world, SOMEBODY, &[verb, &id])?;
        assert_eq!(answer.code, 0, "{verb}: {answer:?}");
    }
    let refused = run_as(&world, SOMEBODY, &["cancel", &id])?;
    assert_eq!(refused.code, 77, "{refused:?}");
    world.running(job)?;
    let allowed = run_as(&world, NOBODY, &["cancel", &id])?;
    assert_eq!(allowed.code, 0, "{allowed:?}");
    let job = submit_as(&world, NOBODY, &["sleep", "1000"])?;
    world.cancel(job)?;
    Ok(())
}

#[test]
fn a_user_cannot_raise_the_priority() -> Result<()> {
    let Some(world) = world()? else {
        e2e::skip!("needs root");
    };
    let answer = run_as(&world, NOBODY, &["submit", "--priority=5", "--", "true"])?;
    assert_eq!(answer.code, 77, "{answer:?}");
    let lower = run_as(&world, NOBODY, &["submit", "--priority=-5", "--", "true"])?;
    assert_eq!(lower.code, 0, "{lower:?}");
    Ok(())
}

#[test]
fn logs_belong_to_the_submitter_and_secrets_to_the_daemon() -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let Some(world) = world()? else {
        e2e::skip!("needs root");
    };
    let job = submit_as(&world, NOBODY, &["echo", "hello"])?;
    assert_eq!(world.wait(job)?, 0);
    let log = world.log_of(job, 1)?;
    assert_eq!(log.metadata()?.uid(), NOBODY);
    let other = run_as(&world, NOBODY, &["log", &job.to_string()])?;
    assert_eq!(other.stdout, "hello\n", "{other:?}");
    // The database holds every user's environment.
    let database = world.state_dir().join("aegis.db").metadata()?;
    assert_eq!(database.mode() & 0o077, 0, "{:o}", database.mode());
    Ok(())
}

#[test]
fn a_users_gpu_job_is_accounted_and_limited() -> Result<()> {
    let Some(world) = world()? else {
        e2e::skip!("needs root");
    };
    let workload = world.artifacts.workload.display().to_string();
    let driver = world.driver().display().to_string();
    let command = [
        "env",
        &format!("LD_LIBRARY_PATH={driver}"),
        &workload,
        "hold",
        "1GiB",
        "--launch",
    ];
    let job = submit_as(&world, NOBODY, &command)?;
    world.said(job, 1, "READY")?;
    let view = e2e::until("the ledger", || {
        let view = world.view(job)?;
        Ok(view
            .holdings
            .first()
            .is_some_and(|h| h.used == GIB)
            .then_some(view))
    })?;
    assert_eq!(view.uid, NOBODY);
    Ok(())
}
