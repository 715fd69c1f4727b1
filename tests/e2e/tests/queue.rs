//! `aegis queue` and `aegis status`: order, states, JSON.

use aegis_common::id::JobId;
use aegis_common::job::JobState;
use anyhow::Result;
use e2e::{GIB, Setup, World};

fn held() -> Result<(World, JobId)> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let holder = world.submit(&["--exclusive"], &world.workload(&["hold", "1GiB"]))?;
    world.said(holder, 1, "READY")?;
    Ok((world, holder))
}

#[test]
fn the_queue_goes_by_priority_then_by_submission() -> Result<()> {
    let (world, holder) = held()?;
    let order = world.file("order");
    let script = format!("echo $AEGIS_JOB_ID >> {}", order.display());
    let mut jobs = Vec::new();
    for priority in ["0", "-5", "0", "-1"] {
        let options = [&format!("--priority={priority}"), "--exclusive"];
        jobs.push(world.submit(&options, &["sh", "-c", &script])?);
    }
    let queue = world.queue()?;
    assert_eq!((queue.running, queue.pending), (1, 4));
    let pending = |view: &&aegis_common::wire::JobView| view.state == JobState::Pending;
    let positions: Vec<_> = queue.jobs.iter().filter(pending).map(|v| v.id).collect();
    let expected = [jobs[0], jobs[2], jobs[3], jobs[1]];
    assert_eq!(positions, expected);
    for view in queue.jobs.iter().filter(pending) {
        assert!(view.waits_for.is_some(), "{view:?}");
        assert!(view.position.is_some(), "{view:?}");
    }
    world.cancel(holder)?;
    for job in &jobs {
        assert_eq!(world.wait(*job)?, 0);
    }
    let text = std::fs::read_to_string(order)?;
    let ran: Vec<JobId> = text
        .lines()
        .filter_map(|l| l.parse().ok().map(JobId))
        .collect();
    assert_eq!(ran, expected);
    Ok(())
}

#[test]
fn finished_jobs_are_shown_on_request() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(&["--name", "short"], &["true"])?;
    world.wait(job)?;
    let live: aegis_common::wire::QueueView = world.json(&["queue"])?;
    assert!(live.jobs.is_empty(), "{live:?}");
    assert_eq!(world.queue()?.jobs.len(), 1);
    let table = world.run(["queue", "--all"])?;
    assert!(table.stdout.contains("short"), "{table:?}");
    assert!(
        !table.stdout.contains('\u{1b}'),
        "colours in a pipe: {table:?}"
    );
    Ok(())
}

#[test]
fn a_reader_that_hangs_up_is_no_error() -> Result<()> {
    // Bad input: `| head`.
    let (world, _) = held()?;
    for number in 0..200 {
        world.submit(&["--name", &format!("job-number-{number}")], &["true"])?;
    }
    let aegis = world.artifacts.aegis.display();
    for verb in ["queue", "queue --json"] {
        let script = format!("{aegis} {verb} | head -n 1; echo \"${{PIPESTATUS[0]}}\"");
        let environment = world.aegis();
        let output = std::process::Command::new("bash")
            .args(["-c", &script])
            .envs(environment.get_envs().filter_map(|(k, v)| Some((k, v?))))
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!stderr.contains("panic"), "{stderr}");
        // 0 if all was written before head left, else what SIGPIPE or a quiet exit gives.
        let code = text.lines().last().unwrap_or_default();
        assert!(["0", "141"].contains(&code), "{text} {stderr}");
    }
    Ok(())
}

#[test]
fn an_unknown_job_is_told_apart_from_a_daemon_that_is_gone() -> Result<()> {
    let mut world = World::start(Setup::gpus(1, 16 * GIB))?;
    let unknown = world.run(["status", "4711"])?;
    assert_eq!(unknown.code, 66, "{unknown:?}");
    assert!(unknown.stderr.contains("4711"), "{unknown:?}");
    world.take_daemon()?.kill()?;
    let gone = world.run(["queue"])?;
    assert_eq!(gone.code, 69, "{gone:?}");
    assert!(gone.stderr.contains("aegis.sock"), "{gone:?}");
    Ok(())
}
