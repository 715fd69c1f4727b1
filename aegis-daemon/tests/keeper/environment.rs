//! What a job finds: arguments, environment, credentials, descriptors, signals.

use aegis_common::job::Exit;

use crate::bench::{Bench, launch, sh, skip};

#[tokio::test]
async fn a_megabyte_of_arguments_arrives_byte_for_byte() {
    let mut bench = Bench::new();
    let out = bench.path().join("out");
    let script = format!("printf '%s\\0' \"$@\" > {}", out.display());
    let long: Vec<Vec<u8>> = (0_u8..32)
        .map(|number| {
            let mut argument = vec![b'a' + number % 26; 32 << 10];
            argument[7] = 0xff;
            argument[8] = b'\n';
            argument[9] = 0x80 | number;
            argument
        })
        .collect();
    let mut argv: Vec<&[u8]> = vec![
        b"sh",
        b"-c",
        script.as_bytes(),
        b"sh",
        b"",
        b"\x1b[0m $(x) 'y",
    ];
    argv.extend(long.iter().map(Vec::as_slice));
    bench.start(1, launch(&argv));
    bench.expect_started(1).await;
    assert_eq!(
        bench.expect_ended(1).await,
        Exit::Code(0),
        "{}",
        bench.log(1)
    );
    let mut expected = Vec::new();
    for argument in &argv[4..] {
        expected.extend_from_slice(argument);
        expected.push(0);
    }
    assert!(std::fs::read(out).unwrap() == expected);
}

#[tokio::test]
async fn the_environment_is_the_submitters_and_the_attempts() {
    let mut bench = Bench::new();
    let mut command = sh("env; umask; pwd");
    command.env.push("AEGIS_JOB_TOKEN=outer".into());
    command.cwd = "/usr".into();
    bench.start(9, command);
    bench.expect_started(9).await;
    bench.expect_ended(9).await;
    let log = bench.log(9);
    let mut lines: Vec<&str> = log
        .lines()
        .filter(|line| {
            !["PWD=", "SHLVL=", "_=", "OLDPWD="]
                .iter()
                .any(|own| line.starts_with(own))
        })
        .collect();
    lines.sort_unstable();
    let token = String::from_utf8(bench.daemon().token(9).to_vec()).unwrap();
    let mut expected = vec![
        "/usr".to_owned(),
        "0027".to_owned(),
        "AEGIS_ATTEMPT=1".to_owned(),
        "AEGIS_JOB_ID=9".to_owned(),
        format!("AEGIS_JOB_TOKEN={token}"),
        format!(
            "AEGIS_SHIM_SOCKET={}",
            bench.path().join("shim.sock").display()
        ),
        "CUDA_VISIBLE_DEVICES=GPU-a,GPU-b".to_owned(),
        "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".to_owned(),
    ];
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn nothing_of_the_daemon_is_inherited() {
    let mut bench = Bench::new();
    // Without CLOEXEC: what a careless library leaves open in the daemon.
    let flags = rustix::pipe::PipeFlags::empty();
    let _leak = rustix::pipe::pipe_with(flags).unwrap();
    bench.start(1, sh("cat; readlink /proc/self/fd/0; ls /proc/self/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status"));
    bench.expect_started(1).await;
    assert_eq!(bench.expect_ended(1).await, Exit::Code(0));
    // 3 is the directory that `ls` reads.
    let none = "0000000000000000";
    let expected = format!("/dev/null\n0\n1\n2\n3\nSigBlk:\t{none}\nSigIgn:\t{none}\n");
    assert_eq!(bench.log(1), expected);
}

#[tokio::test]
async fn in_root_mode_the_job_runs_as_its_user() {
    if !rustix::process::geteuid().is_root() {
        return skip("running as another user needs root");
    }
    let mut bench = Bench::with(false);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o711);
    std::fs::set_permissions(bench.path(), mode).unwrap();
    let script = "id -u; id -g; id -G; cat /proc/self/status | grep -E 'Uid|Cap(Eff|Prm)'; \
                  cat /proc/$PPID/environ; kill -0 $PPID; echo $?";
    bench.daemon().start_as(1, sh(script), 65534, 65533);
    bench.expect_started(1).await;
    assert_eq!(bench.expect_ended(1).await, Exit::Code(0));
    let log = bench.log(1);
    let none = "0000000000000000";
    let expected = format!(
        "65534\n65533\n65533\nUid:\t65534\t65534\t65534\t65534\nCapPrm:\t{none}\nCapEff:\t{none}\n"
    );
    assert!(log.starts_with(&expected), "{log}");
    assert!(
        log.contains("Permission denied") && log.ends_with("1\n"),
        "{log}"
    );
    let owner = |path: &str| {
        let metadata = std::fs::metadata(bench.path().join("state/jobs/1").join(path)).unwrap();
        (
            std::os::unix::fs::MetadataExt::uid(&metadata),
            std::os::unix::fs::MetadataExt::mode(&metadata) & 0o7777,
        )
    };
    assert_eq!(owner(""), (0, 0o711));
    assert_eq!(owner("1"), (65534, 0o700));
    assert_eq!(owner("1/output.log"), (65534, 0o600));
    assert_eq!(owner("1.start"), (0, 0o600));
    assert_eq!(owner("1.exit"), (0, 0o600));
}

#[tokio::test]
async fn in_root_mode_a_killed_keeper_takes_its_job_along() {
    if !rustix::process::geteuid().is_root() {
        return skip("running as another user needs root");
    }
    let mut bench = Bench::with(false);
    let job = aegis_common::id::JobId(1);
    bench
        .daemon()
        .start_as(1, sh("sleep 1000 & wait"), 65534, 65534);
    bench.expect_started(1).await;
    let keeper = bench.daemon().keepers.keeper_pid(job, 1).unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(keeper).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_eq!(bench.expect_ended(1).await, Exit::Unknown);
}
