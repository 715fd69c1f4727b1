//! Commands that cannot be started, each with the path and the reason.

use crate::bench::{Bench, launch, sh};

#[tokio::test]
async fn an_unknown_command_names_the_path_searched() {
    let mut bench = Bench::new();
    bench.start(1, launch(&[b"nosuch", b"x"]));
    let error = bench.daemon().expect_start_failed().await;
    let expected = "nosuch: not found in PATH /usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin \
                    (exit code 127)";
    assert_eq!(error, expected);
    bench.start(2, launch(&[b"/no/such"]));
    let error = bench.daemon().expect_start_failed().await;
    assert!(
        error.starts_with("/no/such: ") && error.contains("127"),
        "{error}"
    );
    bench.start(3, launch(&[b""]));
    assert_eq!(
        bench.daemon().expect_start_failed().await,
        "the command is empty"
    );
}

#[tokio::test]
async fn the_jobs_own_path_is_searched() {
    let mut bench = Bench::new();
    let program = bench.path().join("mine");
    // Without "#!", as a shell would run it.
    std::fs::write(&program, "echo \"ran $1\"\n").unwrap();
    let mut command = launch(&[b"mine", b"here"]);
    command.env = vec![
        format!("PATH=/nowhere:{}", bench.path().display())
            .as_str()
            .into(),
    ];
    bench.start(1, command.clone());
    let error = bench.daemon().expect_start_failed().await;
    assert!(
        error.contains("mine: Permission denied") && error.contains("126"),
        "{error}"
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    bench.start(2, command);
    bench.expect_started(2).await;
    bench.expect_ended(2).await;
    assert_eq!(bench.log(2), "ran here\n");
}

#[tokio::test]
async fn a_missing_interpreter_is_told_from_a_missing_program() {
    let mut bench = Bench::new();
    let program = bench.path().join("script");
    std::fs::write(&program, "#!/no/interpreter\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    bench.start(1, launch(&[program.display().to_string().as_bytes()]));
    let error = bench.daemon().expect_start_failed().await;
    assert!(error.contains("its interpreter"), "{error}");
}

#[tokio::test]
async fn a_lost_working_directory_is_named() {
    let mut bench = Bench::new();
    let mut command = sh("pwd");
    let gone = bench.path().join("gone");
    command.cwd = gone.into_os_string().into();
    bench.start(1, command);
    let error = bench.daemon().expect_start_failed().await;
    assert!(
        error.starts_with("working directory /") && error.contains("/gone: No such"),
        "{error}"
    );
}

#[tokio::test]
async fn an_argument_longer_than_linux_takes_is_explained() {
    let mut bench = Bench::new();
    bench.start(1, launch(&[b"true", &vec![b'x'; 1 << 20]]));
    let error = bench.daemon().expect_start_failed().await;
    assert!(
        error.contains("too long") && error.contains("1048576 bytes"),
        "{error}"
    );
    bench.start(2, launch(&[b"true", b"a\0b"]));
    let error = bench.daemon().expect_start_failed().await;
    assert!(error.contains("NUL"), "{error}");
}

#[tokio::test]
async fn a_log_that_is_a_link_is_not_followed() {
    let mut bench = Bench::new();
    let victim = bench.path().join("victim");
    std::fs::write(&victim, "untouched").unwrap();
    let output = bench.path().join("state/jobs/1/1");
    std::fs::create_dir_all(&output).unwrap();
    std::os::unix::fs::symlink(&victim, output.join("output.log")).unwrap();
    bench.start(1, sh("echo overwritten"));
    let error = bench.daemon().expect_start_failed().await;
    assert!(error.contains("output.log"), "{error}");
    assert_eq!(std::fs::read_to_string(victim).unwrap(), "untouched");
}

#[tokio::test]
async fn a_rootless_daemon_refuses_jobs_of_others() {
    let mut bench = Bench::new();
    bench.daemon().start_as(1, sh("true"), 4711, 4711);
    let error = bench.daemon().expect_start_failed().await;
    assert!(error.contains("uid 4711"), "{error}");
    assert!(!bench.path().join("state/jobs/1/1.start").exists());
}
