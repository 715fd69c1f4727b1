//! `aegis` as a program against a daemon that is scripted: real socket, real process.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

use aegis_common::bytes::ByteString;
use aegis_common::id::{GpuIndex, JobId, Moment};
use aegis_common::job::{Exit, JobState, OomFinal, Outcome, Resources};
use aegis_common::reason::Blocker;
use aegis_common::wire::{
    Attempt, Check, CheckState, DaemonView, ErrorCode, Explanation, Failure, JobView, PROTOCOL,
    QueueView, Request, Response,
};

struct Daemon {
    dir: tempfile::TempDir,
    requests: Receiver<Request>,
}

impl Daemon {
    fn new(answer: impl Fn(Request) -> Response + Send + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        let (requests_tx, requests) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                while let Some(request) = read(&mut stream) {
                    let response = match request.clone() {
                        Request::Hello { .. } => Response::Hello {
                            protocol: PROTOCOL,
                            version: "test".into(),
                        },
                        request => answer(request),
                    };
                    let _ = requests_tx.send(request);
                    let json = serde_json::to_vec(&response).unwrap();
                    let _ = stream.write_all(&(json.len() as u32).to_be_bytes());
                    let _ = stream.write_all(&json);
                }
            }
        });
        Self { dir, requests }
    }

    fn aegis(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aegis"));
        command
            .env("AEGIS_SOCKET", self.dir.path().join("s"))
            .stdin(Stdio::null());
        command
    }

    fn run<const N: usize>(&self, args: [&str; N]) -> Output {
        self.aegis().args(args).output().unwrap()
    }
}

fn read(stream: &mut UnixStream) -> Option<Request> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut json = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut json).ok()?;
    Some(serde_json::from_slice(&json).unwrap())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn job(id: u64, state: JobState) -> JobView {
    JobView {
        id: JobId(id),
        name: "t\x1b[31m".into(),
        uid: 0,
        user: None,
        argv: vec![ByteString(b"a\xff".to_vec())],
        cwd: ByteString::from("/"),
        resources: Resources {
            gpus: 1,
            gpu_mem: None,
            priority: 0,
            exclusive: false,
            requeue: true,
            retries: 3,
            time_limit_s: None,
            on_suspend: None,
        },
        state,
        submitted: Moment(0),
        first_started: None,
        ended: None,
        attempts: vec![],
        holdings: vec![],
        floor: None,
        next_exclusive: false,
        evictions: 0,
        refusals: Vec::new(),
        position: Some(1),
        waits_for: None,
        learned: None,
        idle: Vec::new(),
        slowdown: None,
    }
}

fn over(id: u64, outcome: Outcome) -> JobView {
    job(id, JobState::Done { outcome })
}

fn refusal(code: ErrorCode, id: u64) -> Response {
    Response::Failed(Failure {
        code,
        message: format!("job {id}: \x1b[31mno\n"),
        hint: None,
        job: Some(JobId(id)),
    })
}

fn submitted(_: Request) -> Response {
    let blocker = Blocker::GpuLost { gpu: GpuIndex(0) };
    Response::Submitted {
        job: Box::new(job(7, JobState::Pending)),
        explanation: Explanation {
            job: JobId(7),
            state: JobState::Pending,
            blockers: vec![blocker.into()],
            history: vec![],
        },
    }
}

#[test]
fn a_submission_carries_bytes_directory_and_environment() {
    let daemon = Daemon::new(submitted);
    let odd = OsString::from_vec(b"\xff \x1b\n'$(x)".to_vec());
    let long = "x".repeat(100_000);
    let dir = tempfile::tempdir().unwrap();
    let output = daemon
        .aegis()
        .args([
            "submit",
            "--gpus",
            "2",
            "--gpu-mem",
            "20G",
            "--priority",
            "-3",
            "--no-requeue",
        ])
        .args([
            "--time-limit",
            "90m",
            "--name",
            "n",
            "--",
            "true",
            "--json",
            "a b",
        ])
        .arg(&odd)
        .arg(&long)
        .env("ODD", &odd)
        .env("AEGIS_JOB_TOKEN", "secret")
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let sent = daemon.requests.try_iter().nth(1);
    let Some(Request::Submit(submit)) = sent else {
        panic!("{sent:?}")
    };
    let mut argv: Vec<ByteString> = ["true", "--json", "a b"].map(ByteString::from).to_vec();
    argv.extend([ByteString::from(odd), ByteString::from(long.as_str())]);
    assert_eq!(submit.launch.argv, argv);
    let cwd = dir.path().canonicalize().unwrap().into_os_string();
    assert_eq!(submit.launch.cwd, ByteString::from(cwd));
    assert!(
        submit
            .launch
            .env
            .contains(&ByteString(b"ODD=\xff \x1b\n'$(x)".to_vec()))
    );
    assert!(
        !submit
            .launch
            .env
            .iter()
            .any(|pair| pair.lossy().contains("secret"))
    );
    assert_eq!(submit.requeue, Some(false));
    assert_eq!(submit.retries, None);
    assert_eq!(submit.name.as_deref(), Some("n"));
    let wants = &submit.resources;
    assert_eq!(
        (wants.gpus, wants.gpu_mem, wants.priority),
        (2, Some(20 << 30), -3)
    );
    assert_eq!(wants.time_limit_s, Some(5400));
}

#[test]
fn a_submission_carries_the_umask() {
    let daemon = Daemon::new(submitted);
    let output = Command::new("sh")
        .args(["-c", "umask 027; exec \"$0\" submit -- true"])
        .arg(env!("CARGO_BIN_EXE_aegis"))
        .env("AEGIS_SOCKET", daemon.dir.path().join("s"))
        .output()
        .unwrap();
    assert!(output.status.success());
    let sent = daemon.requests.try_iter().nth(1);
    assert!(
        matches!(&sent, Some(Request::Submit(submit)) if submit.launch.umask == 0o027),
        "{sent:?}"
    );
}

#[test]
fn a_submission_says_why_it_waits_and_what_can_be_done() {
    let daemon = Daemon::new(submitted);
    let shown = text(&daemon.run(["submit", "--", "true"]).stdout);
    assert_eq!(
        shown,
        "\
Job 7 submitted: t\\x1b[31m
It waits because of:
  1. GPU 0: does not answer [gpu_lost]
     clears when NVML sees the GPU again; see `aegis doctor`
Next: aegis status 7 | aegis log -f 7 | aegis wait 7 | aegis cancel 7
"
    );
    assert_eq!(
        text(&daemon.run(["submit", "--parsable", "--", "true"]).stdout),
        "7\n"
    );
    let output = daemon.run(["submit", "--json", "--", "true"]);
    assert!(!text(&output.stdout).contains('\x1b'));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["job"]["id"], 7);
    assert_eq!(document["job"]["argv"][0]["base64"], "Yf8=");
    assert_eq!(document["explanation"]["blockers"][0]["code"], "gpu_lost");
}

#[test]
fn wait_passes_on_how_the_job_ended() {
    let exit = Exit::Code(1);
    for (outcome, code) in [
        (Outcome::Ok, 0),
        (
            Outcome::Failed {
                exit: Exit::Code(3),
            },
            3,
        ),
        (
            Outcome::Failed {
                exit: Exit::Signal(9),
            },
            137,
        ),
        (
            Outcome::Oom {
                exit,
                why: OomFinal::NoRetriesLeft,
            },
            90,
        ),
        (Outcome::Cancelled { by: 0 }, 91),
        (Outcome::Lost, 92),
        (Outcome::Timeout, 124),
        (
            Outcome::StartFailed {
                error: "\x1b".into(),
            },
            126,
        ),
    ] {
        let ended = over(7, outcome);
        let daemon = Daemon::new(move |request| match request {
            Request::Submit(_) => submitted(request),
            Request::Wait { .. } => Response::Jobs {
                jobs: vec![ended.clone()],
            },
            _ => Response::Status {
                job: Box::new(ended.clone()),
            },
        });
        let output = daemon.run(["wait", "7"]);
        assert_eq!(output.status.code(), Some(code));
        assert!(text(&output.stdout).starts_with("job 7 (t\\x1b[31m): "));
        let output = daemon.run(["submit", "--wait", "--json", "--", "true"]);
        assert_eq!(output.status.code(), Some(code));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap();
    }
}

#[test]
fn waiting_for_several_jobs_is_the_first_failures_code_and_66_for_an_unknown_one() {
    let daemon = Daemon::new(|request| match request {
        Request::Status { job: JobId(9) } => refusal(ErrorCode::NotFound, 9),
        Request::Status { job: id } => Response::Status {
            job: Box::new(over(id.0, Outcome::Ok)),
        },
        Request::Wait { jobs } => Response::Jobs {
            jobs: jobs
                .iter()
                .map(|id| {
                    over(
                        id.0,
                        if id.0 == 8 {
                            Outcome::Timeout
                        } else {
                            Outcome::Ok
                        },
                    )
                })
                .collect(),
        },
        other => panic!("{other:?}"),
    });
    let output = daemon.run(["wait", "6", "7"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout).lines().count(), 2);
    assert_eq!(daemon.run(["wait", "7", "8"]).status.code(), Some(124));
    assert_eq!(daemon.run(["wait", "7", "9"]).status.code(), Some(66));
}

#[test]
fn cancel_reports_each_job() {
    let daemon = Daemon::new(|request| match request {
        Request::Cancel { jobs } if jobs.contains(&JobId(8)) => refusal(ErrorCode::NotFound, 8),
        Request::Cancel { jobs } if jobs.contains(&JobId(9)) => refusal(ErrorCode::Forbidden, 9),
        Request::Cancel { jobs } => Response::Jobs {
            jobs: jobs
                .iter()
                .map(|id| over(id.0, Outcome::Cancelled { by: 0 }))
                .collect(),
        },
        other => panic!("{other:?}"),
    });
    assert_eq!(daemon.run(["cancel", "8"]).status.code(), Some(66));
    assert_eq!(daemon.run(["cancel", "9"]).status.code(), Some(77));
    let output = daemon.run(["cancel", "7", "8", "9"]);
    assert_eq!(output.status.code(), Some(66));
    assert_eq!(text(&output.stdout), "job 7 cancelled\n");
    assert_eq!(
        text(&output.stderr),
        "aegis: job 8: \\x1b[31mno\\n\naegis: job 9: \\x1b[31mno\\n\n"
    );
    let output = daemon.run(["cancel", "--json", "7", "8"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["jobs"][0]["id"], 7);
    assert_eq!(document["error"]["code"], "not_found");
    assert_eq!(document["errors"][0]["job"], 8);
}

#[test]
fn a_long_queue_survives_head() {
    let daemon = Daemon::new(|_| {
        Response::Queue(QueueView {
            jobs: (1..=5000).map(|id| job(id, JobState::Pending)).collect(),
            pending: 5000,
            running: 0,
        })
    });
    for json in [&["queue"][..], &["queue", "--json"]] {
        let mut child = daemon
            .aegis()
            .args(json)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), text(&output.stderr)),
            (Some(0), String::new())
        );
    }
    let output = daemon.run(["queue", "--json"]);
    assert!(!text(&output.stdout).contains('\x1b'));
    let document: QueueView = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document.jobs.len(), 5000);
}

#[test]
fn a_log_is_passed_on_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("7.1.log");
    let bytes = b"\x1b[1m\xff\r50%\n";
    std::fs::write(&log, bytes).unwrap();
    let mut ended = over(7, Outcome::Ok);
    ended.attempts = vec![Attempt {
        number: 1,
        gpus: vec![],
        started: Some(Moment(0)),
        ended: None,
        exit: None,
        stopped: None,
        retried: None,
        peak: 0,
        log: ByteString::from(log.clone().into_os_string()),
    }];
    let daemon = Daemon::new(move |_| Response::Status {
        job: Box::new(ended.clone()),
    });
    assert_eq!(daemon.run(["log", "7"]).stdout, bytes);
    assert_eq!(daemon.run(["log", "-f", "7"]).stdout, bytes);
    let output = daemon.run(["log", "7", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (document["attempt"].as_u64(), document["bytes"].as_u64()),
        (Some(1), Some(10))
    );
    assert_eq!(
        daemon.run(["log", "7", "--attempt", "2"]).status.code(),
        Some(66)
    );
    std::fs::remove_file(&log).unwrap();
    assert_eq!(daemon.run(["log", "7"]).status.code(), Some(66));
}

#[test]
fn doctor_adds_its_own_checks_to_the_daemons() {
    let answer = |state| {
        move |_| {
            Response::Doctor(DaemonView {
                version: "test".into(),
                pid: 1,
                rootless: true,
                checks: vec![Check {
                    name: "telemetry".into(),
                    state,
                    detail: "\x1b".into(),
                    hint: Some("look".into()),
                }],
            })
        }
    };
    let daemon = Daemon::new(answer(CheckState::Degraded));
    let output = daemon.run(["doctor"]);
    assert_eq!(output.status.code(), Some(0), "degraded is not failed");
    let shown = text(&output.stdout);
    assert!(
        shown.contains("degraded  telemetry: \\x1b\n          look\n"),
        "{shown}"
    );
    assert!(shown.contains("CUDA driver library"), "{shown}");
    let daemon = Daemon::new(answer(CheckState::Failed));
    assert_eq!(daemon.run(["doctor"]).status.code(), Some(1));
}
