//! `aegis` as a program, without a daemon: help, exit codes, errors.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Output, Stdio};

/// The program with an environment in which no daemon can be found.
fn aegis() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aegis"));
    command
        .env("AEGIS_SOCKET", "/nonexistent/aegis.sock")
        .env_remove("RUST_BACKTRACE")
        .stdin(Stdio::null());
    command
}

fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    aegis().args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Exit code, and the message on standard error; nothing on standard output.
fn refused<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> (i32, String) {
    let output = run(args);
    assert_eq!(text(&output.stdout), "");
    let message = text(&output.stderr);
    assert!(!message.contains("panicked"), "{message}");
    (output.status.code().unwrap(), message)
}

const VERBS: [&str; 13] = [
    "submit",
    "queue",
    "status",
    "explain",
    "log",
    "wait",
    "cancel",
    "gpus",
    "inspect",
    "replay",
    "doctor",
    "completions",
    "help",
];

#[test]
fn every_verb_has_help_with_two_examples() {
    for verb in VERBS {
        let output = run([verb, "--help"]);
        assert!(output.status.success(), "{verb}");
        let help = text(&output.stdout);
        let examples = help.split("Examples:").nth(1).unwrap_or_default();
        assert!(examples.matches("aegis ").count() >= 2, "{verb}: {help}");
        let short = text(&run([verb, "-h"]).stdout);
        assert_eq!(text(&run(["help", verb]).stdout), short, "help {verb}");
    }
}

#[test]
fn exit_codes_are_documented() {
    let help = text(&run(["--help"]).stdout);
    let table = text(&run(["help", "exit-codes"]).stdout);
    assert!(help.contains(&table) && table.contains("   69  "), "{help}");
    for verb in VERBS {
        assert!(help.contains(&format!("\n  {verb}")), "{verb}");
    }
}

#[test]
fn a_wrong_command_line_is_64_and_escapes_in_it_are_harmless() {
    for args in [
        &["nosuchverb"][..],
        &["status"],
        &["status", "zero"],
        &["status", "0"],
        &["submit", "--gpus", "0", "--", "true"],
        &["submit", "--gpu-mem", "20", "--", "true"],
        &["submit", "--time-limit", "4", "--", "true"],
        &["submit", "--requeue", "--no-requeue", "--", "true"],
        &["inspect", "7", "--pid", "8"],
        &["\x1b[31m"],
        &[],
    ] {
        let (code, message) = refused(args);
        assert_eq!(code, 64, "{args:?}: {message}");
        assert!(!message.contains('\x1b'), "{message:?}");
    }
    assert!(
        refused(["submit", "--gpu-mem", "20", "--", "true"])
            .1
            .contains("20GiB")
    );
}

#[test]
fn a_command_that_cannot_run_is_refused_before_the_daemon_is_asked() {
    for (args, part) in [
        (&["submit"][..], "no command to run"),
        (&["submit", "--"], "no command to run"),
        (&["submit", "--", ""], "no command to run"),
        (&["submit", "--", "nosuchcmd"], "nosuchcmd"),
        (&["submit", "--", "./nosuchfile"], "no such file"),
        (&["submit", "--", "/etc/passwd"], "not executable"),
        (&["submit", "--", "/"], "directory"),
    ] {
        let (code, message) = refused(args);
        assert_eq!(code, 64, "{args:?}");
        assert!(
            message.contains(part) && message.contains("hint:"),
            "{args:?}: {message}"
        );
    }
}

#[test]
fn a_working_directory_that_is_gone_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let script = "cd \"$1\" && rmdir \"$1\" && exec \"$2\" submit -- true";
    let output = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(dir.path())
        .arg(env!("CARGO_BIN_EXE_aegis"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(text(&output.stderr).contains("working directory no longer exists"));
}

#[test]
fn without_a_daemon_every_verb_is_69_with_a_way_out() {
    for args in [
        &["submit", "--", "true"][..],
        &["submit", "true", "--json", "--", "x"],
        &["queue"],
        &["status", "1"],
        &["explain", "1"],
        &["log", "1"],
        &["log", "-f", "1"],
        &["wait", "1", "2"],
        &["cancel", "#1"],
        &["gpus"],
        &["inspect"],
        &["replay", "--trace", "history:30d"],
    ] {
        let (code, message) = refused(args);
        assert_eq!(code, 69, "{args:?}: {message}");
        assert!(message.contains("aegisd is not running"), "{message}");
        assert!(
            message.contains("systemctl") && message.contains("--rootless"),
            "{message}"
        );
        assert!(message.lines().count() <= 3, "{message}");
    }
}

#[test]
fn doctor_works_without_a_daemon() {
    let output = run(["doctor"]);
    assert_eq!(output.status.code(), Some(69));
    let found = text(&output.stdout);
    for name in [
        "daemon:",
        "configuration:",
        "shim library:",
        "CUDA driver library:",
    ] {
        assert!(found.contains(name), "{found}");
    }
    let output = run(["doctor", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["daemon"].is_null());
    assert_eq!(document["local"][0]["state"], "failed");
}

#[test]
fn under_json_errors_are_one_document_on_standard_output() {
    for (args, status, code) in [
        (&["--json", "queue"][..], 69, "unreachable"),
        (&["queue", "--json"], 69, "unreachable"),
        (&["submit", "--json"], 64, "bad_request"),
        (
            &["--json", "submit", "--", "nosuchcmd", "--help"],
            64,
            "bad_request",
        ),
        (&["--json", "nosuchverb"], 64, "bad_request"),
        (&["status", "--json", "\x1b[31m"], 64, "bad_request"),
        (&["log", "-f", "1", "--json"], 64, "bad_request"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(status), "{args:?}");
        assert_eq!(text(&output.stderr), "", "{args:?}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["error"]["code"], code, "{args:?}");
        assert!(
            document["error"]["message"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
    }
}

#[test]
fn json_after_the_command_belongs_to_the_command() {
    let (code, _) = refused(["submit", "--", "nosuchcmd", "--json"]);
    assert_eq!(code, 64);
}

#[test]
fn a_closed_pipe_is_no_error() {
    for args in [
        &["--help"][..],
        &["completions", "bash"],
        &["help", "exit-codes"],
        &["doctor"],
    ] {
        let mut child = aegis()
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(text(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = aegis().arg("--help").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(74));
}

#[test]
fn arguments_that_are_not_text_are_taken() {
    let odd = OsString::from_vec(b"\xff\x1b".to_vec());
    let args = ["submit", "--", "true"]
        .map(OsString::from)
        .into_iter()
        .chain([odd]);
    assert_eq!(refused(args).0, 69);
}

#[test]
fn completions_are_made_for_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&run(["completions", shell]).stdout);
        assert!(
            script.contains("submit") && script.contains("gpu-mem"),
            "{shell}"
        );
    }
    assert_eq!(refused(["completions", "dos"]).0, 64);
}

#[test]
fn replay_compares_policies_without_a_daemon() {
    let args = [
        "replay",
        "--generate",
        "saturn",
        "--jobs",
        "12",
        "--policy",
        "control",
    ];
    let output = run(args);
    assert_eq!(text(&output.stderr), "");
    let shown = text(&output.stdout);
    let first =
        |line: Option<&str>| line.and_then(|line| line.split(' ').next().map(str::to_owned));
    let policies: Vec<_> = shown
        .lines()
        .skip(1)
        .map(|line| first(Some(line)))
        .collect();
    assert_eq!(
        policies,
        [Some("exclusive".to_owned()), Some("control".to_owned())]
    );
    assert_eq!(text(&run(args).stdout), shown, "the same again");

    let output = run(args.into_iter().chain(["--seeds", "2", "--json"]));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["seeds"], serde_json::json!([0, 1]));
    let control = &document["policies"][1];
    assert_eq!(control["policy"], "control");
    assert!(control["absolute"]["makespan"].as_f64().unwrap() > 0.0);
    assert!(control["ci95"]["makespan"].is_number());
    assert_eq!(document["policies"][0]["relative"]["makespan"], 1.0);
}

#[test]
fn a_wrong_replay_is_refused_with_what_would_be_right() {
    for (wrong, part) in [
        (&["--generate", "pluto"][..], "philly, saturn, venus"),
        (&["--generate", "open", "--policy", "luzid"], "lucid-paper"),
        (&["--generate", "open", "--gpus", "0"], "1..=64"),
        (&["--generate", "open", "--gpu-mem", "0"], "GiB"),
        (&["--generate", "open", "--load", "NaN"], "load"),
        (
            &["--generate", "open", "--interference", "magic"],
            "additive",
        ),
        (
            &["--generate", "open", "--seed", "1", "--seeds", "2"],
            "--seeds",
        ),
        (&[], "--generate"),
        (&["--trace", "a.csv", "--generate", "open"], "--generate"),
        (&["--trace", "history:soon"], "history:30d"),
        (&["--trace", "/nonexistent/a.csv"], "No such file"),
    ] {
        let (code, message) = refused(["replay"].iter().chain(wrong));
        assert_eq!(code, 64, "{wrong:?}: {message}");
        assert!(message.contains(part), "{wrong:?}: {message}");
    }
}

#[test]
fn replay_reads_traces_and_says_what_it_assumed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.csv");
    let mut csv = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n".to_owned();
    for job in 0..9 {
        let (gpus, model) = if job == 4 { (8, "vgg16") } else { (1, "dqn") };
        csv += &format!("{job},{gpus},{},100,{model},300,30\n", job * 30);
    }
    std::fs::write(&path, csv).unwrap();
    let trace = path.to_str().unwrap();
    let output = run(["replay", "--trace", trace, "--gpus", "2", "--json"]);
    let notes = text(&output.stderr);
    assert!(notes.contains("8 of 9 jobs"), "{notes}");
    assert!(notes.contains("1 jobs want more GPUs"), "{notes}");
    assert!(notes.contains("8 jobs run a program drawn"), "{notes}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["jobs"], 8);
    assert_eq!(document["assumptions"].as_array().unwrap().len(), 3);

    let pairs = dir.path().join("pairs.csv");
    std::fs::write(&pairs, "program,beside,slowdown\ndqn,dqn,1.9\n").unwrap();
    let plot = dir.path().join("lanes.svg");
    let picture = plot.to_str().unwrap();
    let output = run(["replay", "--trace", trace, "--plot", picture]);
    assert!(text(&output.stderr).contains("lanes.svg"));
    let svg = std::fs::read_to_string(&plot).unwrap();
    assert!(svg.starts_with("<svg ") && svg.matches("<title>job ").count() >= 16);
    let (_, message) = refused(["replay", "--trace", trace, "--plot", "/nonexistent/a.svg"]);
    assert!(message.contains("cannot write"), "{message}");

    let cells = format!("cells={}", pairs.display());
    let output = run(["replay", "--trace", trace, "--interference", &cells]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (code, message) = refused(["replay", "--generate", "open", "--interference", &cells]);
    assert_eq!(code, 64);
    assert!(message.contains("no program of it"), "{message}");

    std::fs::write(
        &path,
        "job_id,num_gpu,submit_time,model_name,duration\n1,1,x,a,5\n",
    )
    .unwrap();
    let (code, message) = refused(["replay", "--trace", trace]);
    assert_eq!(code, 64);
    assert!(message.contains("line 2, submit_time"), "{message}");
}
