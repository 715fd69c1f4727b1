//! The command line without a driver: what it says and how it exits.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

fn workload(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_workload"));
    command.args(args).stdin(Stdio::null());
    command
}

fn output(args: &[&str]) -> Output {
    workload(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn help_has_examples_and_exit_codes() {
    let text = String::from_utf8(output(&["--help"]).stdout).unwrap();
    assert!(text.contains("workload vision --progress"));
    assert!(text.contains("70 wrong data"));
}

#[test]
fn bad_options_exit_with_2_and_name_the_option() {
    for (args, names) in [
        (&["vision", "--steps", "0"][..], "--steps"),
        (&["llm", "--weights", "lots"], "--weights"),
        (&["llm", "--sm", "1.5"], "--sm"),
        (&["vision", "--saturate", "--sm", "0.5"], "--saturate"),
        (&["vision", "--grow-at", "3"], "--grow-bytes"),
        (&["hold"], "SIZE"),
    ] {
        let got = output(args);
        assert_eq!(got.status.code(), Some(2), "{args:?}");
        assert!(stderr(&got).contains(names), "{args:?}: {}", stderr(&got));
    }
}

#[test]
fn an_unusable_driver_exits_with_69_and_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    // Found before any real one, and no library.
    fs::write(dir.path().join("libcuda.so.1"), "").unwrap();
    for route in ["dlsym", "getprocaddress"] {
        let got = workload(&["--route", route, "alloc-once", "1MiB"])
            .env("LD_LIBRARY_PATH", dir.path())
            .output()
            .unwrap();
        assert_eq!(got.status.code(), Some(69), "{}", stderr(&got));
        assert!(stderr(&got).contains("LD_LIBRARY_PATH"));
    }
}

#[test]
fn the_plan_needs_no_driver() {
    let got = output(&["llm", "--steps", "7", "--gpus", "2", "--print-plan"]);
    let plan: serde_json::Value = serde_json::from_slice(&got.stdout).unwrap();
    assert_eq!(plan["steps_total"], 7);
    assert_eq!(plan["gpus"], 2);
}

#[test]
fn a_reader_that_has_gone_is_an_error_not_a_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let got = workload(&["vision", "--print-plan"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    assert_eq!(got.status.code(), Some(74));
    assert!(!stderr(&got).contains("panicked"));
}

/// A field of `/proc/PID/stat` after the command's name: 0 state, 1 ppid, 3 session.
fn stat(pid: i32, field: usize) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = text.rsplit_once(") ").unwrap();
    rest.split(' ').nth(field).unwrap().to_owned()
}

fn catches_sigterm(pid: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = text
        .lines()
        .find_map(|l| l.strip_prefix("SigCgt:"))
        .unwrap();
    let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
    mask & (1 << (Signal::TERM.as_raw() - 1)) != 0
}

#[test]
fn a_tree_leaves_the_session_and_loses_its_parent() {
    let mut root = workload(&["spawn-tree"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(root.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let pids: Vec<i32> = line
        .strip_prefix("TREE ")
        .unwrap()
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect();
    let own = root.id().to_string();
    let session = stat(pids[0], 3);
    let children = pids[1..].iter().filter(|&&pid| stat(pid, 1) == own).count();
    let left = pids.iter().filter(|&&pid| stat(pid, 3) != session).count();
    let deaf = pids.iter().filter(|&&pid| catches_sigterm(pid)).count();
    for &pid in &pids {
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
    root.wait().unwrap();
    assert_eq!(pids.len(), 5);
    assert_eq!((children, left, deaf), (2, 2, 1));
}
