//! A state directory, a keeper program, and a daemon's place in front of them.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aegis_common::bytes::ByteString;
use aegis_common::id::{GpuIndex, JobId, Moment};
use aegis_common::job::{Exit, Resources};
use aegis_common::wire::Launch;
use aegis_daemon::jobs::{KeeperEvent, Keepers, KeepersConfig, StartOrder, keeper_pids, log_path};
use aegis_daemon::store::JobRecord;
use tokio::io::AsyncBufReadExt;
use tokio::sync::mpsc;

/// Until a test that waits for something that never comes is given up.
const HANG: Duration = Duration::from_secs(60);

/// A daemon's view of its keepers.
pub(crate) struct Daemon {
    pub(crate) keepers: Keepers,
    events: mpsc::UnboundedReceiver<KeeperEvent>,
    path: PathBuf,
}

/// One test's directory and daemon.
pub(crate) struct Bench {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) daemon: Option<Daemon>,
    /// Jobs write their pids here.
    pub(crate) fifo: PathBuf,
    /// Jobs read here to wait for the test.
    pub(crate) gate: PathBuf,
    pids: tokio::io::BufReader<tokio::net::unix::pipe::Receiver>,
    pub(crate) rootless: bool,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(true)
    }

    pub(crate) fn with(rootless: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let [fifo, gate] = ["pids", "gate"].map(|name| {
            let path = path.join(name);
            let mode = rustix::fs::Mode::from_raw_mode(0o666);
            rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
            path
        });
        let pids = tokio::net::unix::pipe::OpenOptions::new()
            .read_write(true)
            .open_receiver(&fifo)
            .unwrap();
        let daemon = Some(daemon(path, rootless));
        Self {
            pids: tokio::io::BufReader::new(pids),
            directory,
            daemon,
            fifo,
            gate,
            rootless,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A further daemon on the same directories.
    pub(crate) fn another_daemon(&self) -> Daemon {
        daemon(self.path(), self.rootless)
    }

    pub(crate) fn daemon(&mut self) -> &mut Daemon {
        self.daemon.as_mut().unwrap()
    }

    pub(crate) fn start(&mut self, job: u64, launch: Launch) {
        self.daemon().start(job, launch);
    }

    pub(crate) async fn expect_started(&mut self, job: u64) {
        self.daemon().expect_started(job).await;
    }

    pub(crate) async fn expect_ended(&mut self, job: u64) -> Exit {
        self.daemon().expect_ended(job).await
    }

    /// The job's output.
    pub(crate) fn log(&self, job: u64) -> String {
        let path = log_path(&self.path().join("state"), JobId(job), 1);
        String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
    }

    /// The next pid a job wrote to the fifo.
    pub(crate) async fn read_pid(&mut self) -> u32 {
        let mut line = String::new();
        let read = self.pids.read_line(&mut line);
        tokio::time::timeout(HANG, read).await.unwrap().unwrap();
        line.trim().parse().unwrap()
    }

    /// Lets one reader of the gate go on.
    pub(crate) fn open_gate(&self) {
        let mut gate = std::fs::OpenOptions::new()
            .write(true)
            .open(&self.gate)
            .unwrap();
        gate.write_all(b"\n").unwrap();
    }
}

impl Drop for Bench {
    /// A test that failed must leave nothing running.
    fn drop(&mut self) {
        let runtime = self.path().join("r".repeat(120));
        for (_, _, keeper) in keeper_pids(&runtime).unwrap_or_default() {
            let name = std::fs::read(format!("/proc/{keeper}/cmdline")).unwrap_or_default();
            let pid = i32::try_from(keeper)
                .ok()
                .and_then(rustix::process::Pid::from_raw);
            if let (Some(pid), true) = (pid, name.ends_with(b"keeper\0")) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
        }
    }
}

fn daemon(path: &Path, rootless: bool) -> Daemon {
    let (sender, events) = mpsc::unbounded_channel();
    let config = KeepersConfig {
        state_dir: path.join("state"),
        // Longer than a socket's address may be.
        runtime_dir: path.join("r".repeat(120)),
        keeper_program: env!("CARGO_BIN_EXE_aegisd").into(),
        shim_library: path.join("no-shim.so"),
        shim_socket: path.join("shim.sock"),
        grace: Duration::from_millis(200),
        rootless,
    };
    Daemon {
        keepers: Keepers::new(config, sender).unwrap(),
        events,
        path: path.to_owned(),
    }
}

impl Daemon {
    pub(crate) fn start(&mut self, job: u64, launch: Launch) {
        let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
        self.start_as(job, launch, uid.as_raw(), gid.as_raw());
    }

    pub(crate) fn start_as(&mut self, job: u64, launch: Launch, uid: u32, gid: u32) {
        let record = JobRecord {
            id: JobId(job),
            uid,
            name: "test".to_owned(),
            launch,
            resources: Resources {
                gpus: 1,
                gpu_mem: None,
                priority: 0,
                exclusive: false,
                requeue: false,
                retries: 0,
                time_limit_s: None,
                on_suspend: None,
            },
            token: self.token(job),
            submitted: Moment(0),
            gid,
            groups: vec![gid],
            learned: aegis_common::learned::Learned::default(),
        };
        self.keepers.start(StartOrder {
            job: JobId(job),
            attempt: 1,
            record: &record,
            gpu_uuids: &["GPU-a".to_owned(), "GPU-b".to_owned()],
            gpus: &[GpuIndex(3), GpuIndex(1)],
            resumed: false,
        });
    }

    pub(crate) fn token(&self, job: u64) -> [u8; 32] {
        token(&self.path, job)
    }

    pub(crate) async fn event(&mut self) -> KeeperEvent {
        let event = tokio::time::timeout(HANG, self.events.recv()).await;
        event.expect("an event of a keeper").unwrap()
    }

    pub(crate) async fn expect_started(&mut self, job: u64) {
        let expected = KeeperEvent::Started {
            job: JobId(job),
            attempt: 1,
            gpus: vec![GpuIndex(3), GpuIndex(1)],
        };
        assert_eq!(self.event().await, expected);
    }

    pub(crate) async fn expect_ended(&mut self, job: u64) -> Exit {
        match self.event().await {
            KeeperEvent::Ended {
                job: of,
                attempt: 1,
                exit,
            } if of == JobId(job) => exit,
            other => panic!("instead of the end: {other:?}"),
        }
    }

    pub(crate) async fn expect_start_failed(&mut self) -> String {
        match self.event().await {
            KeeperEvent::StartFailed { error, .. } => error,
            other => panic!("instead of a failed start: {other:?}"),
        }
    }
}

/// No two tests' jobs may have the same: processes are found, and killed, by it.
fn token(daemon: &Path, job: u64) -> [u8; 32] {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (daemon, std::process::id()).hash(&mut hasher);
    let text = format!("{:016x}{job:016x}", hasher.finish());
    text.into_bytes().try_into().unwrap()
}

/// A launch of this command line.
pub(crate) fn launch(argv: &[&[u8]]) -> Launch {
    Launch {
        argv: argv
            .iter()
            .map(|argument| ByteString(argument.to_vec()))
            .collect(),
        cwd: "/".into(),
        env: vec!["PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".into()],
        umask: 0o027,
    }
}

/// A launch of a shell script.
pub(crate) fn sh(script: &str) -> Launch {
    launch(&[b"sh", b"-c", script.as_bytes()])
}

/// Whether the process is there and alive.
pub(crate) fn exists(pid: u32) -> bool {
    let Ok(status) = std::fs::File::open(format!("/proc/{pid}/status")) else {
        return false;
    };
    !std::io::BufReader::new(status)
        .lines()
        .map_while(Result::ok)
        .any(|line| line.starts_with("State:\tZ") || line.starts_with("State:\tX"))
}

/// Says that a check was left out, and which.
pub(crate) fn skip(what: &str) {
    eprintln!("SKIPPED 1: {what}");
}
