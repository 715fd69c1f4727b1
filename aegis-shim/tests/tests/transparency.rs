//! With no daemon, nothing changes; with one, only harmless questions are added.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::Ordering::SeqCst;

use aegis_common::abi::message::Verdict;
use aegis_shim_tests::build::{built, cc, compile, is_installed};
use aegis_shim_tests::client::{Setup, WAYS, Way};
use aegis_shim_tests::daemon::{FakeDaemon, TOKEN, nobody};
use tempfile::TempDir;

/// A session of a client that touches every family.
const SESSION: [&str; 22] = [
    "init",
    "context 0",
    "info",
    "total 1",
    "alloc 4096",
    "alloc32 64",
    "pitch 300 10",
    "managed 2000",
    "async 3000 7",
    "async_ptsz 3000 7",
    "pool 500 7",
    "create 4096 1 1",
    "array 16 16",
    "launch 3",
    "launch_ptsz 2",
    "graph 1",
    "host 1",
    "copy 2",
    "memset 2",
    "begin 7",
    "end 7",
    "alloc 99999999999",
];

/// Runs the session; returns the client's answers and the driver's journal.
fn journal(setup: Setup) -> (Vec<String>, String) {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("journal");
    let mut client = setup.env("FAKE_CUDA_JOURNAL", &path).start();
    let mut answers = Vec::new();
    for command in SESSION {
        client.tell(command);
        answers.push(client.line());
    }
    client.end();
    (answers, std::fs::read_to_string(&path).expect("a journal"))
}

#[test]
fn without_a_daemon_the_driver_sees_the_same_calls() {
    for way in WAYS {
        let bare = journal(Setup::bare(way));
        assert!(bare.1.contains("cuLaunchKernel_ptsz\n"));
        let shim = &built().shim;
        let unknown = FakeDaemon::answering_hello(Some(Verdict::Unknown));
        let incompatible = FakeDaemon::answering_hello(Some(Verdict::Incompatible));
        let silent = FakeDaemon::answering_hello(None);
        let mut dead = FakeDaemon::start();
        dead.die();
        for (case, setup) in [
            ("no variables", Setup::bare(way).env("LD_PRELOAD", shim)),
            (
                "no token",
                Setup::with_shim(way, nobody()).env("AEGIS_JOB_TOKEN", ""),
            ),
            ("no socket", Setup::with_shim(way, nobody())),
            (
                "long path",
                Setup::with_shim(way, Path::new(&"/x".repeat(100))),
            ),
            ("dead daemon", Setup::with_shim(way, &dead.path())),
            ("silent daemon", Setup::with_shim(way, &silent.path())),
            ("unknown job", Setup::with_shim(way, &unknown.path())),
            ("other version", Setup::with_shim(way, &incompatible.path())),
        ] {
            assert_eq!(journal(setup), bare, "{case}, {way:?}");
        }
        let daemon = FakeDaemon::start();
        let disabled = Setup::with_shim(way, &daemon.path()).env("AEGIS_SHIM_DISABLE", "1");
        assert_eq!(journal(disabled), bare, "disabled, {way:?}");
        assert_eq!(daemon.registered(), 0);
    }
}

#[test]
fn with_a_daemon_only_questions_of_identity_are_added() {
    for way in WAYS {
        let bare = journal(Setup::bare(way));
        let daemon = FakeDaemon::start();
        let watched = journal(Setup::with_shim(way, &daemon.path()));
        assert_eq!(watched.0, bare.0, "{way:?}");
        let questions = [
            "cuCtxGetCurrent",
            "cuCtxGetDevice",
            "cuDeviceGetUuid_v2",
            "cuStreamIsCapturing",
        ];
        let without_questions = |journal: &str| {
            journal
                .lines()
                .filter(|call| !questions.contains(call))
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(
            without_questions(&watched.1),
            without_questions(&bare.1),
            "{way:?}"
        );
        assert_eq!(daemon.registered(), 1);
    }
}

#[test]
fn a_forked_child_registers_anew_and_leaves_its_parents_ledger_alone() {
    let daemon = FakeDaemon::start();
    let mut client = Setup::with_shim(Way::Dlsym, &daemon.path()).start();
    client.begin();
    client.ok("alloc 1000");
    client.ok("launch 5");
    client.tell("fork");
    assert_eq!(client.line(), "forked");
    client.ok("launch 7");
    client.ok("context 1");
    client.ok("alloc 300");
    client.tell("exit 0");
    assert_eq!(client.line(), "bye");
    assert_eq!(client.line(), "child 0");
    client.ok("alloc 10");
    client.ok("launch 1");
    let (parent, child) = (daemon.ledger(0), daemon.ledger(1));
    let kernels = |ledger: &aegis_shim_tests::sys::Ledger| -> u64 {
        ledger
            .launch_lines()
            .map(|line| line.kernels.load(SeqCst))
            .sum()
    };
    assert_eq!(parent.gpu(0).used[0].load(SeqCst), 1010);
    assert_eq!(kernels(&parent), 6);
    assert_eq!(kernels(&child), 7);
    // Its launches made GPU 0 the child's first line.
    assert_eq!(child.gpu(0).used[0].load(SeqCst), 0);
    assert_eq!(child.gpu(1).used[0].load(SeqCst), 300);
    assert_eq!(
        child.gpu(1).uuid[0].load(SeqCst),
        u64::from_ne_bytes([0xa1; 8])
    );
    client.end();
}

#[test]
fn no_descriptor_is_kept_and_closing_all_hurts_nobody() {
    let daemon = FakeDaemon::start();
    daemon.line(0).limit.store(10_000, SeqCst);
    let mut client = Setup::with_shim(Way::Dlsym, &daemon.path()).start();
    let before = client.ok("fds");
    client.begin();
    assert_eq!(client.run("alloc 20000").status, 2);
    assert_eq!(client.ok("fds"), before);
    client.tell("close_all");
    client.line();
    assert_eq!(client.run("alloc 20000").status, 2);
    client.ok("alloc 10000");
    assert_eq!(daemon.ledger(0).gpu(0).used[0].load(SeqCst), 10_000);
    client.end();
}

#[test]
fn cu_get_proc_address_routes_by_pointer_version_and_stream() {
    let directory = TempDir::new().expect("a directory");
    let program = directory.path().join("where");
    cc(&[], &["where.c"], &program, &["-ldl"]);
    let daemon = FakeDaemon::start();
    let output = Command::new(&program)
        .args([
            "cuMemAlloc:12000:0",
            "cuMemAlloc:2000:0",
            "cuMemAlloc:99000:0",
            "cuMemFree:12000:0",
            "cuMemFree:99000:0",
            "cuDriverGetVersion:12000:0",
            "cuGetProcAddress:11030:0",
            "cuGetProcAddress:12000:0",
            "cuLaunchKernel:12000:0",
            "cuLaunchKernel:12000:2",
            ":0:0",
            "cuNoSuch:12000:0",
        ])
        .env("LD_LIBRARY_PATH", &built().directory)
        .env("LD_PRELOAD", &built().shim)
        .env("AEGIS_SHIM_SOCKET", daemon.path())
        .env("AEGIS_JOB_TOKEN", TOKEN)
        .output()
        .expect("it runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let answers: Vec<(&str, &str)> = text
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.rsplitn(3, ' ').collect();
            (words[1], words[0])
        })
        .collect();
    let from: Vec<&str> = answers.iter().map(|answer| answer.0).collect();
    let (shim, driver) = ("libaegis_shim.so", "libcuda.so.1");
    assert_eq!(
        from,
        [
            shim, shim,   // two signatures of cuMemAlloc
            driver, // a signature of the future
            shim,   // a pointer that no exported symbol has
            driver, // the same, of an unknown version
            driver, // not hooked
            shim, shim, shim, shim, "-", "-"
        ],
        "{text}"
    );
    assert_ne!(answers[0].1, answers[1].1);
    assert_ne!(answers[6].1, answers[7].1, "four and five arguments");
    assert_ne!(answers[8].1, answers[9].1, "the two default streams");
    assert_eq!(
        daemon.ledger(0).header().unknown_lookups.load(SeqCst),
        3,
        "{text}"
    );
}

#[test]
fn rtld_next_and_default_keep_their_callers() {
    let directory = TempDir::new().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    cc(
        &["-shared", "-fPIC", "-DLAST"],
        &["chain.c"],
        &at("libchain.so"),
        &[],
    );
    cc(
        &["-shared", "-fPIC", "-DSTEP=2"],
        &["chain.c"],
        &at("two.so"),
        &["-ldl"],
    );
    cc(
        &["-shared", "-fPIC", "-DSTEP=3"],
        &["chain.c"],
        &at("three.so"),
        &["-ldl"],
    );
    cc(
        &["-shared", "-fPIC"],
        &["other_library.c"],
        &at("other.so"),
        &[],
    );
    let chain = at("libchain.so");
    let chain = chain.to_str().expect("a plain path");
    cc(&[], &["lookups.c"], &at("lookups"), &[chain, "-ldl"]);
    let run = |preload: &[&Path], other: &Path| {
        let output = Command::new(at("lookups"))
            .arg(other)
            .env("LD_PRELOAD", join(preload))
            .env("AEGIS_SHIM_SOCKET", nobody())
            .env("AEGIS_JOB_TOKEN", TOKEN)
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let (shim, two, three) = (built().shim.as_path(), &at("two.so"), &at("three.so"));
    for other in [at("other.so"), built().directory.join("libcuda.so.1")] {
        let bare = run(&[two, three], &other);
        assert!(bare.contains("chain 132 132"), "{bare}");
        assert!(bare.contains("default cuInit: null error -"), "{bare}");
        for preload in [[shim, two, three], [two, shim, three], [two, three, shim]] {
            // Looked up in the driver itself, a hooked function is the hook.
            let seen = run(&preload, &other)
                .replace("found - libaegis_shim.so\n", "found - libcuda.so.1\n");
            assert_eq!(seen, bare);
        }
    }
}

#[test]
fn a_library_that_is_not_the_driver_is_left_alone() {
    let directory = TempDir::new().expect("a directory");
    let library = directory.path().join("libother.so");
    let program = directory.path().join("client");
    cc(&["-shared", "-fPIC"], &["other_library.c"], &library, &[]);
    cc(
        &[],
        &["other_client.c"],
        &program,
        &[library.to_str().expect("a plain path"), "-ldl"],
    );
    let daemon = FakeDaemon::start();
    let output = Command::new(&program)
        .arg(&library)
        .env("LD_PRELOAD", &built().shim)
        .env("AEGIS_SHIM_SOCKET", daemon.path())
        .env("AEGIS_JOB_TOKEN", TOKEN)
        .output()
        .expect("it runs");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "42 42 9\n",
        "{output:?}"
    );
    assert_eq!(daemon.registered(), 0);
}

#[test]
fn programs_that_never_call_the_driver_run_unchanged() {
    let directory = TempDir::new().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    cc(&[], &["hello.c"], &at("dynamic"), &[]);
    cc(&["-static"], &["hello.c"], &at("static"), &[]);
    let mut programs: Vec<(String, Vec<&str>)> = vec![
        (text(&at("dynamic")), vec![]),
        (text(&at("static")), vec![]),
        (
            "bash".into(),
            vec![
                "-c",
                "echo $((6*7)); (exit 3); echo $?; /bin/true | cat; ulimit -n",
            ],
        ),
        (
            "python3".into(),
            vec![
                "-c",
                "import ctypes, threading, subprocess; print(subprocess.run(['/bin/echo', 'x']).returncode); print(ctypes.CDLL(None).getpid() > 0)",
            ],
        ),
        ("java".into(), vec!["-version"]),
    ];
    if is_installed("musl-gcc") {
        compile("musl-gcc", &[], &["hello.c"], &at("musl"), &[]);
        compile(
            "musl-gcc",
            &["-static"],
            &["hello.c"],
            &at("musl_static"),
            &[],
        );
        programs.push((text(&at("musl")), vec![]));
        programs.push((text(&at("musl_static")), vec![]));
    } else {
        programs.push(("musl-gcc".into(), vec![]));
    }
    let mut skipped = Vec::new();
    for (program, arguments) in &programs {
        if !program.contains('/') && !is_installed(program) {
            skipped.push(program);
            continue;
        }
        let run = |preload: &OsStr| -> Output {
            Command::new(program)
                .args(arguments)
                .env("LD_PRELOAD", preload)
                .env("AEGIS_SHIM_SOCKET", nobody())
                .env("AEGIS_JOB_TOKEN", TOKEN)
                .output()
                .expect("it runs")
        };
        let bare = run(OsStr::new(""));
        let shimmed = run(built().shim.as_os_str());
        assert_eq!(shimmed.status, bare.status, "{program}");
        assert_eq!(text_of(&shimmed.stdout), text_of(&bare.stdout), "{program}");
        assert_eq!(text_of(&shimmed.stderr), text_of(&bare.stderr), "{program}");
    }
    eprintln!(
        "programs run: {}, skipped: {skipped:?}",
        programs.len() - skipped.len()
    );
    assert!(programs.len() - skipped.len() >= 3, "skipped: {skipped:?}");
}

fn join(paths: &[&Path]) -> String {
    paths
        .iter()
        .map(|path| text(path))
        .collect::<Vec<_>>()
        .join(":")
}

fn text(path: &Path) -> String {
    path.to_str().expect("a plain path").to_owned()
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
