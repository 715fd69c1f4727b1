//! Bad input gives a clear error that names the field and the way out, and harms nothing.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use aegis_common::job::Outcome;
use anyhow::{Context, Result};
use e2e::{Daemon, GIB, Setup, World};

fn refused(
    world: &World,
    options: &[&str],
    command: &[&str],
    code: i32,
    words: &[&str],
) -> Result<()> {
    let answer = world.try_submit(options, command)?;
    assert_eq!(answer.code, code, "{options:?} {command:?}: {answer:?}");
    for word in words {
        assert!(
            answer.text().contains(word),
            "{options:?}: no `{word}` in {answer:?}"
        );
    }
    Ok(())
}

#[test]
fn impossible_demands_are_refused_with_the_numbers() -> Result<()> {
    let world = World::start(Setup::gpus(2, 16 * GIB))?;
    refused(&world, &["--gpus", "3"], &["true"], 67, &["3", "2"])?;
    refused(
        &world,
        &["--gpu-mem", "64GiB"],
        &["true"],
        67,
        &["64", "15.00 GiB"],
    )?;
    refused(&world, &["--gpus", "0"], &["true"], 64, &["--gpus"])?;
    refused(&world, &["--gpu-mem", "0"], &["true"], 64, &["--gpu-mem"])?;
    refused(
        &world,
        &["--gpu-mem", "lots"],
        &["true"],
        64,
        &["--gpu-mem", "lots"],
    )?;
    refused(
        &world,
        &["--time-limit", "0s"],
        &["true"],
        64,
        &["--time-limit"],
    )?;
    refused(
        &world,
        &["--retries", "1000"],
        &["true"],
        64,
        &["--retries"],
    )?;
    assert!(world.queue()?.jobs.is_empty(), "nothing was accepted");
    Ok(())
}

#[test]
fn an_empty_command_is_refused() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    refused(&world, &[], &[""], 64, &["command"])?;
    let none = world.run(["submit"])?;
    assert_eq!(none.code, 64, "{none:?}");
    Ok(())
}

#[test]
fn an_unknown_command_fails_to_start_and_says_why() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    for command in [
        &["/no/such/program"][..],
        &["no-such-program-7"],
        &["/etc/passwd"],
        &["/"],
    ] {
        let answer = world.try_submit(&[], command)?;
        if answer.code != 0 {
            assert!(
                answer.text().contains(command[0]),
                "refused at submit: {answer:?}"
            );
            continue;
        }
        let value: serde_json::Value = serde_json::from_str(&answer.stdout)?;
        let id = value.pointer("/job/id").or_else(|| value.get("id"));
        let id = id.and_then(serde_json::Value::as_u64).context("id")?;
        let (view, outcome) = world.done(aegis_common::id::JobId(id))?;
        let Outcome::StartFailed { error } = outcome else {
            panic!("{command:?}: {view:?}");
        };
        assert!(error.contains(command[0]), "{error}");
    }
    Ok(())
}

#[test]
fn a_directory_that_goes_away_is_named() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let directory = world.file("gone");
    // Gone while queued.
    std::fs::create_dir(&directory)?;
    let holder = world.submit(&["--exclusive"], &world.workload(&["hold", "1GiB"]))?;
    world.said(holder, 1, "READY")?;
    let output = world
        .aegis()
        .args(["submit", "--exclusive", "--", "true"])
        .current_dir(&directory)
        .output()?;
    assert!(output.status.success(), "{output:?}");
    std::fs::remove_dir(&directory)?;
    world.cancel(holder)?;
    let (_, outcome) = world.done(aegis_common::id::JobId(2))?;
    let Outcome::StartFailed { error } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(error.contains(&directory.display().to_string()), "{error}");
    // Gone at submit.
    std::fs::create_dir(&directory)?;
    let script = "rmdir \"$PWD\"; exec \"$AEGIS\" submit -- true";
    let aegis = world.aegis();
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .envs(aegis.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .env("AEGIS", &world.artifacts.aegis)
        .current_dir(&directory)
        .output()?;
    assert!(!output.status.success(), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("directory"), "{stderr}");
    Ok(())
}

#[test]
fn a_broken_configuration_is_refused_and_the_nearest_key_named() -> Result<()> {
    for (text, words) in [
        (
            "[scheduler]\nplacment = \"best-fit\"\n",
            vec!["placment", "placement"],
        ),
        (
            "[scheduler]\nplacement = \"bestfit\"\n",
            vec!["bestfit", "best-fit"],
        ),
        ("[jobs]\ngrace = \"soon\"\n", vec!["grace", "soon"]),
        ("[jobs]\ngrace = 5 5\n", vec!["aegis.toml"]),
        ("[nonsense]\na = 1\n", vec!["nonsense"]),
    ] {
        let mut setup = Setup::gpus(1, 16 * GIB);
        setup.raw_config = Some(text.to_owned());
        let world = World::prepare(setup)?;
        for extra in [vec!["--check-config"], vec![]] {
            let output = world.aegisd().args(extra).output()?;
            assert_eq!(output.status.code(), Some(78), "{text}: {output:?}");
            let stderr = String::from_utf8_lossy(&output.stderr);
            for word in &words {
                assert!(stderr.contains(word), "{text}: no `{word}` in {stderr}");
            }
        }
    }
    let world = World::prepare(Setup::gpus(1, 16 * GIB))?;
    let output = world.aegisd().arg("--check-config").output()?;
    assert!(output.status.success(), "{output:?}");
    Ok(())
}

#[test]
fn a_damaged_database_is_kept_and_the_way_out_named() -> Result<()> {
    let mut world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(&[], &["true"])?;
    world.wait(job)?;
    world.take_daemon()?.terminate()?;
    let database = world.state_dir().join("aegis.db");
    let length = database.metadata()?.len();
    for name in ["aegis.db-wal", "aegis.db-shm"] {
        // They may not exist after a clean end.
        let _ = std::fs::remove_file(world.state_dir().join(name));
    }
    let damaged = vec![0x5a; usize::try_from(length)?];
    std::fs::write(&database, &damaged)?;
    let Err(error) = world.start_daemon() else {
        panic!("the daemon started on a damaged database");
    };
    let text = format!("{error:#}");
    assert!(text.contains("aegis.db"), "{text}");
    assert!(text.contains("move"), "names the way out: {text}");
    assert_eq!(std::fs::read(&database)?, damaged, "it was not touched");
    // The way out works.
    std::fs::rename(&database, world.state_dir().join("aegis.db.damaged"))?;
    world.start_daemon()?;
    let next = world.submit(&[], &["true"])?;
    assert!(next.0 > job.0, "job numbers are never used again");
    Ok(())
}

#[test]
fn a_second_daemon_is_refused_and_the_first_goes_on() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(&[], &["sleep", "1000"])?;
    world.running(job)?;
    let Err(error) = Daemon::start(world.aegisd(), &world.file("second.log")) else {
        panic!("a second daemon started");
    };
    let text = format!("{error:#}");
    assert!(text.contains("another daemon"), "{text}");
    world.running(job)?;
    world.cancel(job)?;
    // Another state directory, the same socket.
    let mut other = Setup::gpus(1, 16 * GIB);
    other = other
        .key("daemon.socket", &format!("{:?}", world.socket()))
        .key(
            "daemon.shim_socket",
            &format!("{:?}", world.file("other.sock")),
        );
    let Err(error) = World::start(other) else {
        panic!("a second daemon took the socket");
    };
    let text = format!("{error:#}");
    assert!(text.contains("aegis.sock"), "{text}");
    assert_eq!(world.queue()?.running, 0, "the first still answers");
    Ok(())
}

#[test]
fn a_socket_left_behind_by_a_crash_is_no_obstacle() -> Result<()> {
    let mut world = World::start(Setup::gpus(1, 16 * GIB))?;
    world.take_daemon()?.kill()?;
    assert!(world.socket().exists());
    world.start_daemon()?;
    world.queue()?;
    Ok(())
}

#[test]
fn a_full_disk_for_logs_hurts_only_the_output() -> Result<()> {
    let Some(disk) = e2e::SmallDisk::mount(&e2e::SmallDisk::place()?, 16 << 20)? else {
        e2e::skip!("needs root to mount a small file system");
    };
    let setup = Setup::gpus(1, 16 * GIB).key("daemon.state_dir", &format!("{:?}", disk.path()));
    let mut world = World::start(setup)?;
    // Fills the disk through its own log, then goes on.
    let script = "while printf '%65536s' x 2>/dev/null; do :; done; touch went-on; exit 5";
    let job = world.submit(&[], &["sh", "-c", script])?;
    e2e::until("the disk is full", || {
        Ok(world.file("went-on").exists().then_some(()))
    })?;
    assert!(world.daemon()?.try_ended()?.is_none(), "the daemon lives");
    // Its end must be known in the end, with the truth.
    std::fs::OpenOptions::new()
        .write(true)
        .open(world.log_of(job, 1)?)?
        .set_len(0)?;
    let code = world.wait(job)?;
    assert!(
        code == 5 || code == 255,
        "the true code, or `lost` if it could not be recorded: {code}"
    );
    Ok(())
}

#[test]
fn a_full_disk_for_the_journal_refuses_and_starts_nothing() -> Result<()> {
    let Some(disk) = e2e::SmallDisk::mount(&e2e::SmallDisk::place()?, 8 << 20)? else {
        e2e::skip!("needs root to mount a small file system");
    };
    // The second GPU stays free: what is refused could have started at once.
    let setup = Setup::gpus(2, 16 * GIB).key("daemon.state_dir", &format!("{:?}", disk.path()));
    let mut world = World::start(setup)?;
    let before = world.submit(&["--exclusive"], &["sleep", "1000"])?;
    world.running(before)?;
    let filler = disk.fill()?;
    let mut refused = None;
    for number in 0..200 {
        // Free pages in the write-ahead log may take a few more.
        let mark = world.file(&format!("mark-{number}"));
        let answer = world.try_submit(&[], &["touch".as_ref(), mark.as_os_str()])?;
        if answer.code != 0 {
            refused = Some((answer, mark));
            break;
        }
    }
    let (answer, mark) = refused.context("a full disk refused nothing")?;
    assert_eq!(answer.code, 74, "{answer:?}");
    assert!(answer.text().contains("disk"), "{answer:?}");
    assert!(world.daemon()?.try_ended()?.is_none());
    world.running(before)?;
    std::fs::remove_file(filler)?;
    let after = e2e::until("submissions are accepted again", || {
        let answer = world.try_submit(&["--name", "after"], &["true"])?;
        Ok((answer.code == 0).then_some(()))
    });
    after?;
    let after = world
        .queue()?
        .jobs
        .into_iter()
        .find(|job| job.name == "after");
    assert_eq!(world.wait(after.context("after")?.id)?, 0);
    assert!(!mark.exists(), "what was refused never ran");
    world.cancel(before)?;
    Ok(())
}

#[test]
fn a_megabyte_of_arguments_arrives_and_more_is_refused() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    // The kernel allows 128 KiB per argument.
    let piece = "x".repeat(100 * 1024);
    let mut command = vec!["sh", "-c", "echo \"$#\" > count", "sh"];
    command.extend(std::iter::repeat_n(piece.as_str(), 10));
    let job = world.submit(&[], &command)?;
    assert_eq!(world.wait(job)?, 0);
    assert_eq!(std::fs::read_to_string(world.file("count"))?, "10\n");
    Ok(())
}

#[test]
fn arguments_that_are_not_text_are_shown_and_kept() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let odd = OsString::from_vec(b"\xff\xfe\x01".to_vec());
    let job = world.submit(&[], &["test".into(), odd.clone(), "=".into(), odd])?;
    assert_eq!(world.wait(job)?, 0);
    let view = world.view(job)?;
    assert_eq!(view.argv[1].0, b"\xff\xfe\x01");
    let shown = world.run(["status", &job.to_string()])?;
    assert!(!shown.stdout.contains('\u{1}'), "{shown:?}");
    Ok(())
}

#[test]
fn unknown_options_are_refused_with_a_hint() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let answer = world.run(["submit", "--gpu-memory", "3GiB", "--", "true"])?;
    assert_eq!(answer.code, 64, "{answer:?}");
    assert!(answer.stderr.contains("--gpu-mem"), "{answer:?}");
    let help = world.run(["submit", "--help"])?;
    assert_eq!(help.code, 0);
    assert!(help.stdout.contains("aegis submit "), "examples: {help:?}");
    Ok(())
}
