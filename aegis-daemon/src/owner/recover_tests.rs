//! Recovery from what a dead daemon left on the disk.
#![cfg(test)]

use std::path::Path;

use aegis_common::action::Action;
use aegis_common::event::{Event, Gpu, GpuSample, Stamped};
use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use aegis_common::job::{Exit, JobState, Outcome, Resources};
use aegis_common::learned::{Learned, Observed};
use aegis_common::policy::{Policy, Tier};
use aegis_common::wire::Launch;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};

use super::recover::Loopback;
use super::{Owner, Settings};
use crate::config::Admins;
use crate::jobs::{Keepers, KeepersConfig};
use crate::lease::{LeaseName, LeasePage, start_ticks};
use crate::scheduler::Core;
use crate::store::{JobRecord, Store};

const GIB: u64 = 1 << 30;
const JOB: JobId = JobId(1);
const GPU: GpuIndex = GpuIndex(0);
const UUID: &str = "GPU-00112233-4455-6677-8899-aabbccddeeff";
const TOKEN: [u8; 32] = *b"0123456789abcdef0123456789abcdef";

fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn resources() -> Resources {
    Resources {
        gpus: 1,
        gpu_mem: Some(4 * GIB),
        priority: 0,
        exclusive: false,
        requeue: true,
        retries: 3,
        time_limit_s: Some(3600),
        on_suspend: None,
    }
}

/// A state directory in which a daemon journalled an idle GPU, the submission of [`JOB`] (which
/// makes it start) and `then`, and died.
fn crashed(then: &[Event]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let gpu = Gpu {
        index: GPU,
        uuid: UUID.to_owned(),
        name: "H200".to_owned(),
        memory: 40 * GIB,
        tier: Tier::Gpm,
        peers: Vec::new(),
    };
    let sample = GpuSample {
        gpu: GPU,
        sm_active: Some(0),
        sm_occupancy: Some(0),
        dram_active: Some(0),
        used: Some(0),
        foreign: Vec::new(),
        jobs: Vec::new(),
    };
    let mut events = vec![
        Event::Configured {
            policy: Policy::default(),
        },
        Event::MachineFound { gpus: vec![gpu] },
        Event::Sampled { sample },
        Event::Submitted {
            job: JOB,
            uid: uid(),
            resources: resources(),
            learned: Learned::default(),
        },
    ];
    events.extend_from_slice(then);
    let mut store = Store::open(&directory.path().join("aegis.db")).unwrap();
    let mut core = Core::new();
    for (at, event) in (1000..).zip(events) {
        let at = Moment(at);
        let actions = core.step(at, &event);
        store.append(&Stamped { at, event }, &actions).unwrap();
    }
    assert!(matches!(core.live().next(), Some(JOB)));
    let launch = Launch {
        argv: vec!["true".into()],
        cwd: "/".into(),
        env: Vec::new(),
        umask: 0o22,
    };
    store
        .put_job(&JobRecord {
            id: JOB,
            uid: uid(),
            name: "train".to_owned(),
            launch,
            resources: resources(),
            token: TOKEN,
            submitted: Moment(1000),
            gid: 0,
            groups: Vec::new(),
            learned: Learned::default(),
        })
        .unwrap();
    store.commit().unwrap();
    std::fs::create_dir_all(directory.path().join("jobs/1")).unwrap();
    std::fs::create_dir(directory.path().join("leases")).unwrap();
    directory
}

/// The start record of attempt 1 under that keeper.
fn record_start(directory: &Path, keeper: ProcessKey) {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let record = json!({
        "version": 1, "job": 1, "attempt": 1, "uid": uid(), "gpus": [0],
        "token": String::from_utf8_lossy(&TOKEN), "boot_id": boot.trim(), "keeper": keeper,
        "socket": "none.sock", "at": 1004,
    });
    let path = directory.join("jobs/1/1.start");
    std::fs::write(path, record.to_string()).unwrap();
}

fn record_end(directory: &Path, exit: Exit) {
    let record = json!({
        "version": 1, "job": 1, "attempt": 1, "end": {"end": "exited", "exit": exit},
        "main_ended": 1005, "ended": 1005, "user_ms": 0, "system_ms": 0, "max_rss_kib": 0,
    });
    let path = directory.join("jobs/1/1.exit");
    std::fs::write(path, record.to_string()).unwrap();
}

fn recover(directory: &Path) -> Owner {
    let settings = Settings {
        rootless: true,
        uid: uid(),
        admins: Admins::default(),
        default_requeue: true,
        default_retries: 3,
        default_time_limit_s: None,
        max_time_limit_s: None,
        suspend_grace_s: 60,
        idle_after_ms: 600_000,
        lease_dir: directory.join("leases"),
        shim_library: None,
        nvml_library: None,
        pressure_dir: directory.join("pressure"),
        state_dir: directory.to_owned(),
    };
    let config = KeepersConfig {
        state_dir: directory.to_owned(),
        runtime_dir: directory.to_owned(),
        keeper_program: "/bin/false".into(),
        shim_library: "".into(),
        shim_socket: directory.join("shim.sock"),
        grace: std::time::Duration::ZERO,
        rootless: true,
    };
    let (events, _) = mpsc::unbounded_channel();
    let keepers = Keepers::new(config, events).unwrap();
    let store = Store::open(&directory.join("aegis.db")).unwrap();
    let (process_gone, _) = mpsc::unbounded_channel();
    let (_, stop) = watch::channel(false);
    let loopback = Loopback { process_gone, stop };
    Owner::recover(settings, Policy::default(), store, keepers, loopback).unwrap()
}

fn outcome(owner: &Owner) -> JobState {
    owner.view(JOB).unwrap().state
}

#[tokio::test]
async fn a_job_cancelled_before_its_keeper_claimed_it_is_over() {
    let cancel = Event::CancelRequested { job: JOB, by: 7 };
    let directory = crashed(&[cancel]);
    let owner = recover(directory.path());
    let cancelled = JobState::Done {
        outcome: Outcome::Cancelled { by: 7 },
    };
    assert_eq!(outcome(&owner), cancelled);
}

fn started() -> Event {
    Event::Started {
        job: JOB,
        attempt: 1,
        gpus: vec![GPU],
    }
}

#[tokio::test]
async fn a_job_that_ended_in_time_while_there_was_no_daemon_did_not_time_out() {
    let directory = crashed(&[started()]);
    let gone = ProcessKey {
        pid: 1,
        start_ticks: u64::MAX,
    };
    record_start(directory.path(), gone);
    record_end(directory.path(), Exit::Code(0));
    // By the clock of the recovery its time limit passed long ago.
    let owner = recover(directory.path());
    let ok = JobState::Done {
        outcome: Outcome::Ok,
    };
    assert_eq!(outcome(&owner), ok);
}

#[tokio::test]
async fn what_a_running_job_relies_on_is_taken_up() {
    let directory = crashed(&[started()]);
    let mut child = std::process::Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    let keeper = ProcessKey {
        pid,
        start_ticks: start_ticks(pid).unwrap(),
    };
    record_start(directory.path(), keeper);
    let stale = LeaseName {
        job: JobId(9),
        process: ProcessKey {
            pid: 2,
            start_ticks: 3,
        },
    };
    LeasePage::create(&directory.path().join("leases"), stale).unwrap();
    let owner = recover(directory.path());
    assert_eq!(owner.virtual_totals.get(&JOB), Some(&(4 * GIB)));
    let uuid = crate::lease::uuid::parse(UUID).unwrap();
    assert_eq!(owner.gpus_in_use(), [(uuid, GPU)]);
    let left = std::fs::read_dir(directory.path().join("leases")).unwrap();
    assert_eq!(left.count(), 0, "a lease page of a dead process");
    // Overdue since before the restart, and stopped only now that its keeper is watched.
    assert!(matches!(outcome(&owner), JobState::Stopping { .. }));
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// Keepers do not wait for the disk: after a power failure a start record may be missing or empty
/// though the command ran.
#[tokio::test]
async fn an_attempt_that_a_power_failure_left_without_a_record_is_not_run_again() {
    for (then, record) in [(vec![], None), (vec![], Some("")), (vec![started()], None)] {
        let directory = crashed(&then);
        std::fs::write(directory.path().join("jobs/boot"), "an earlier one").unwrap();
        if let Some(record) = record {
            std::fs::write(directory.path().join("jobs/1/1.start"), record).unwrap();
        }
        let owner = recover(directory.path());
        let lost = Outcome::Lost;
        assert_eq!(outcome(&owner), JobState::Done { outcome: lost });
    }
}

#[tokio::test]
async fn what_an_attempt_taught_counts_once_and_is_told_to_the_next_of_that_user() {
    let directory = crashed(&[]);
    let mut owner = recover(directory.path());
    let record = owner.whole_record(JOB).unwrap();
    assert_eq!(owner.recall(&record), Learned::default());
    let observed = Observed {
        gpu_model: "H200".to_owned(),
        completed: true,
        out_of_memory: false,
        peak: Some(3 * GIB),
        overhead: None,
        profile: None,
        solo_rates: Vec::new(),
        ran_ms: 5_000,
        work_ms: None,
        ended: Moment(9_000),
    };
    let learn = Action::Learn {
        job: JOB,
        observed: observed.clone(),
    };
    // Told again, as by a daemon that does not know whether it had been carried out.
    owner.settle(vec![learn.clone()], true);
    owner.settle(vec![learn], true);
    let learned = owner.recall(&record);
    assert_eq!((learned.runs, learned.peak), (1, Some(3 * GIB)));
    assert_eq!(learned.work.map(|work| work.p50), Some(5_000));
    assert_eq!(owner.store().learned_from(JOB, 1).unwrap(), Some(observed));
    let stranger = JobRecord {
        uid: record.uid + 1,
        ..record
    };
    assert_eq!(owner.recall(&stranger), Learned::default());
}
