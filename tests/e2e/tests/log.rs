//! `aegis log`: one log per attempt, followed to the end.

use anyhow::Result;
use e2e::{GIB, Setup, World};

#[test]
fn output_and_error_are_in_one_log() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(&[], &["sh", "-c", "echo out; echo err >&2; printf last"])?;
    world.wait(job)?;
    let answer = world.run(["log", &job.to_string()])?;
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(answer.stdout.trim_end(), "out\nerr\nlast");
    Ok(())
}

#[test]
fn following_shows_every_line_and_ends_with_the_job() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let go = world.file("go");
    let script = format!(
        "echo one; while [ ! -e {} ]; do sleep 0.05; done; echo two",
        go.display()
    );
    let job = world.submit(&[], &["sh", "-c", &script])?;
    world.said(job, 1, "one")?;
    let follower = world
        .aegis()
        .args(["log", "-f", &job.to_string()])
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    std::fs::write(&go, "")?;
    let output = follower.wait_with_output()?;
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one\ntwo\n");
    Ok(())
}

#[test]
fn control_characters_do_not_reach_a_terminal_but_survive_in_a_file() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(&[], &["printf", "a\\033[2Jb\\n"])?;
    world.wait(job)?;
    let piped = world.run(["log", &job.to_string()])?;
    assert_eq!(piped.stdout, "a\u{1b}[2Jb\n", "a pipe gets the bytes");
    // `script` gives the command a terminal.
    if std::process::Command::new("script")
        .arg("--version")
        .output()
        .is_err()
    {
        e2e::skip!("util-linux's `script` is not installed");
    }
    let environment = world.aegis();
    let output = std::process::Command::new("script")
        .args(["-qec"])
        .arg(format!("{} log {job}", world.artifacts.aegis.display()))
        .arg("/dev/null")
        .envs(environment.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .stdin(std::process::Stdio::null())
        .output()?;
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(!shown.contains("\u{1b}[2J"), "{shown:?}");
    assert!(shown.contains('a') && shown.contains('b'), "{shown:?}");
    Ok(())
}

#[test]
fn each_attempt_has_its_own_log() -> Result<()> {
    let world = World::start(Setup::gpus(1, 8 * GIB))?;
    let holder = world.submit(
        &["--gpu-mem", "4GiB"],
        &world.workload(&["hold", "4GiB", "--launch"]),
    )?;
    world.said(holder, 1, "READY")?;
    world.steady(holder)?;
    let command = world.workload(&[
        "vision",
        "--startup",
        "0.1",
        "--epochs",
        "1",
        "--steps",
        "20",
        "--grow-at",
        "5",
        "--grow-bytes",
        "3GiB",
    ]);
    let job = world.submit(&["--retries", "3"], &command)?;
    world.reach(job, "has failed once", |view| {
        view.attempts.iter().any(|a| a.retried.is_some())
    })?;
    world.cancel(holder)?;
    assert_eq!(world.wait(job)?, 0);
    let first = std::fs::read_to_string(world.log_of(job, 1)?)?;
    assert!(first.contains("CUDA out of memory"), "{first}");
    let count = world.view(job)?.attempts.len();
    assert!(count >= 2);
    let last = std::fs::read_to_string(world.log_of(job, u32::try_from(count)?)?)?;
    assert!(!last.contains("CUDA out of memory"), "{last}");
    let shown = world.run(["log", &job.to_string()])?;
    assert!(shown.stdout.contains(last.trim_end()), "{shown:?}");
    Ok(())
}
