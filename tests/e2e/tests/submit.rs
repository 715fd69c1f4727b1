//! `aegis submit`: what is accepted, how it is run.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use aegis_common::job::{Exit, Outcome};
use anyhow::{Context, Result};
use e2e::{GIB, Setup, World};

/// Writes its own arguments, NUL-terminated, to the file named first.
const ARGUMENTS: &str = "f=$1; shift; printf '%s\\0' \"$@\" > \"$f\"";

#[test]
fn a_training_job_runs_to_its_end_on_a_gpu() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let progress = world.file("p");
    let command = world.workload(&[
        "vision",
        "--startup",
        "0.1",
        "--epochs",
        "1",
        "--steps",
        "10",
        "--progress",
        &progress.display().to_string(),
    ]);
    let job = world.submit(&["--name", "first"], &command)?;
    let (view, outcome) = world.done(job)?;
    assert_eq!(outcome, Outcome::Ok);
    assert_eq!(view.name, "first");
    assert_eq!(view.attempts.len(), 1);
    assert!(view.attempts[0].peak > GIB, "{view:?}");
    let progress = e2e::read_progress(&progress)?;
    assert!(progress.completed());
    assert_eq!(progress.attempts(), ["1"]);
    Ok(())
}

#[test]
fn arguments_arrive_byte_exact_and_through_no_shell() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let out = world.file("arguments");
    let strange: Vec<OsString> = [
        &b"plain"[..],
        b"",
        b"two words",
        b"$(reboot) `id` ; | > * ~ \\ \"'",
        b"new\nline\ttab",
        b"--json",
        b"--",
        b"\xff\xfe not text \x01",
        "d\u{e9}j\u{e0} vu".as_bytes(),
    ]
    .iter()
    .map(|bytes| OsString::from_vec(bytes.to_vec()))
    .collect();
    let mut command: Vec<OsString> = ["sh", "-c", ARGUMENTS, "sh"].map(OsString::from).to_vec();
    command.push(out.clone().into());
    command.extend(strange.clone());
    let job = world.submit(&[], &command)?;
    assert_eq!(world.wait(job)?, 0);
    let mut expected = Vec::new();
    for word in strange {
        expected.extend(word.into_vec());
        expected.push(0);
    }
    assert_eq!(std::fs::read(&out)?, expected);
    Ok(())
}

#[test]
fn environment_directory_and_umask_are_the_submitters() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let directory = world.file("deep dir");
    std::fs::create_dir(&directory)?;
    let script = "umask 027; exec \"$AEGIS\" submit --json -- sh -c \
                  'pwd > where; umask >> where; echo \"$MINE\" >> where; \
                  echo \"$AEGIS_JOB_ID $AEGIS_ATTEMPT\" >> where; tty >> where 2>&1; cat >> where'";
    let aegis = world.aegis();
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", script])
        .current_dir(&directory)
        .env_clear()
        .envs(aegis.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .env("AEGIS", &world.artifacts.aegis)
        .env("MINE", "a=b c");
    let output = shell.output()?;
    assert!(output.status.success(), "{output:?}");
    let job = aegis_common::id::JobId(1);
    assert_eq!(world.wait(job)?, 0);
    let text = std::fs::read_to_string(directory.join("where"))?;
    let lines: Vec<&str> = text.lines().collect();
    let there = std::fs::canonicalize(&directory)?.display().to_string();
    assert_eq!(lines, [&there, "0027", "a=b c", "1 1", "not a tty"]);
    Ok(())
}

#[test]
fn exit_codes_and_signals_are_recorded_as_they_were() -> Result<()> {
    let world = World::start(Setup::gpus(2, 16 * GIB))?;
    let code = world.submit(&[], &["sh", "-c", "exit 7"])?;
    let signal = world.submit(&[], &["sh", "-c", "kill -USR1 $$; sleep 9"])?;
    assert_eq!(world.wait(code)?, 7);
    assert_eq!(
        world.done(code)?.1,
        Outcome::Failed {
            exit: Exit::Code(7)
        }
    );
    assert_eq!(world.wait(signal)?, 128 + 10);
    assert_eq!(
        world.done(signal)?.1,
        Outcome::Failed {
            exit: Exit::Signal(10)
        }
    );
    Ok(())
}

#[test]
fn jobs_see_their_gpus_renumbered_from_zero() -> Result<()> {
    let world = World::start(Setup::gpus(2, 16 * GIB))?;
    let holder = world.submit(&["--exclusive"], &world.workload(&["hold", "1GiB"]))?;
    world.said(holder, 1, "READY")?;
    let job = world.submit(
        &["--exclusive"],
        &["sh", "-c", "echo \"visible $CUDA_VISIBLE_DEVICES\""],
    )?;
    let visible = world.said(job, 1, "visible")?;
    let (view, _) = world.done(job)?;
    let gpu = view.attempts[0].gpus.first().context("a GPU")?.0;
    let gpus = world.gpus()?;
    let uuid = &gpus.iter().find(|g| g.index.0 == gpu).context("view")?.uuid;
    // By UUID or by index: either way it is the one GPU of the job.
    assert!(visible == *uuid || visible == gpu.to_string(), "{visible}");
    let other = world.view(holder)?.attempts[0].gpus.clone();
    assert_ne!(other, view.attempts[0].gpus);
    Ok(())
}

#[test]
fn a_two_gpu_job_gets_both_and_both_are_accounted() -> Result<()> {
    let world = World::start(Setup::gpus(2, 16 * GIB))?;
    for layout in ["contexts", "processes"] {
        let command = world.workload(&[
            "vision",
            "--gpus",
            "2",
            "--ranks",
            layout,
            "--startup",
            "0.1",
            "--epochs",
            "1",
            "--steps",
            "10",
        ]);
        let job = world.submit(&["--gpus", "2"], &command)?;
        let (view, outcome) = world.done(job)?;
        assert_eq!(outcome, Outcome::Ok, "{layout}");
        assert_eq!(view.attempts[0].gpus.len(), 2);
        assert!(view.attempts[0].peak > GIB, "{layout}: {view:?}");
    }
    Ok(())
}

#[test]
fn a_name_is_shown_without_control_characters() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(&["--name", "a\u{1b}[31mred\u{7}\nb"], &["true"])?;
    world.wait(job)?;
    for arguments in [
        vec!["queue", "--all"],
        vec!["status", "1"],
        vec!["explain", "1"],
    ] {
        let answer = world.run(&arguments)?;
        let bad = |c: char| c.is_control() && c != '\n';
        assert!(
            !answer.stdout.contains(bad),
            "{arguments:?}: {:?}",
            answer.stdout
        );
        assert!(!answer.stdout.contains("red\n"), "{:?}", answer.stdout);
    }
    Ok(())
}

#[test]
fn a_submission_says_what_comes_next() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let answer = world.run(["submit", "--", "true"])?;
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.stdout.contains('1'), "{answer:?}");
    assert!(
        answer.stdout.contains("aegis "),
        "names a next command: {answer:?}"
    );
    Ok(())
}
