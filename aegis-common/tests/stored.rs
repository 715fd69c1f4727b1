//! What is stored on disk or sent between versions keeps its form: the files in `fixtures/` were
//! written by protocol 1, and this version must still read them and write them alike.
//!
//! A changed line here means that an older daemon's journal can no longer be read: keep the old
//! form readable (serde defaults and aliases) or raise the protocol and migrate.

use aegis_common::action::{Action, GrowAnswer, StopHow};
use aegis_common::event::{Event, ForeignProcess, Gpu, GpuSample, Link, Peer, ProcessGpu, Stamped};
use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use aegis_common::job::{Exit, OnSuspend, OomFinal, Outcome, Resources};
use aegis_common::learned::{Learned, Observed, Profile, Quantiles, SoloRate};
use aegis_common::policy::{Policy, Tier};
use aegis_common::reason::{Denial, RetryReason, StopReason};
use aegis_common::wire::{HistoryFilter, Launch, Request, Submit, SuspendWish};
use serde::Serialize;
use serde::de::DeserializeOwned;

const PROCESS: ProcessKey = ProcessKey {
    pid: 4242,
    start_ticks: 1_234_567,
};
const JOB: JobId = JobId(7);
const GPU: GpuIndex = GpuIndex(1);
const GIB: u64 = 1 << 30;

const ON_SUSPEND: OnSuspend = OnSuspend {
    signal: 10,
    grace_s: 60,
};
const PROFILE: Profile = Profile {
    sm_active: 640,
    sm_occupancy: Some(310),
    dram_active: None,
};
const SOLO_RATE: SoloRate = SoloRate {
    fingerprint: 77,
    rate_uhz: 12_500_000,
};

fn resources() -> Resources {
    Resources {
        gpus: 2,
        gpu_mem: Some(6 * GIB),
        priority: -1,
        exclusive: false,
        requeue: true,
        retries: 3,
        time_limit_s: Some(3600),
        on_suspend: Some(ON_SUSPEND),
    }
}

/// Compares line by line with the stored file, both ways.
fn assert_stored<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    file: &str,
    values: &[T],
) {
    let path = format!("{}/tests/fixtures/{file}", env!("CARGO_MANIFEST_DIR"));
    let written = values
        .iter()
        .map(|value| serde_json::to_string(value).unwrap());
    let written = written.collect::<Vec<_>>();
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        std::fs::write(&path, written.join("\n") + "\n").unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap();
    let stored = stored.lines().collect::<Vec<_>>();
    assert_eq!(stored.len(), values.len(), "{file}: one line per value");
    for ((line, value), written) in stored.iter().zip(values).zip(&written) {
        assert_eq!(
            line, written,
            "{file}: written differently than protocol 1 did"
        );
        assert_eq!(&serde_json::from_str::<T>(line).unwrap(), value, "{file}");
    }
}

/// Reads what an earlier landed version stored: new fields have defaults.
fn assert_readable<T: DeserializeOwned>(file: &str) {
    let path = format!(
        "{}/tests/fixtures/landed-1/{file}",
        env!("CARGO_MANIFEST_DIR")
    );
    let stored = std::fs::read_to_string(&path).unwrap();
    assert!(stored.lines().count() > 0, "{file}");
    for line in stored.lines() {
        if let Err(error) = serde_json::from_str::<T>(line) {
            panic!("{file}: {error}: {line}");
        }
    }
}

#[test]
fn what_an_earlier_version_stored_is_read() {
    assert_readable::<Stamped>("events.jsonl");
    assert_readable::<Action>("actions.jsonl");
    assert_readable::<Request>("requests.jsonl");
}

#[test]
fn events() {
    let usage = ProcessGpu {
        gpu: GPU,
        used: GIB,
        inflight: 0,
        nvml: Some(GIB + 5),
        refusal: Some(9),
    };
    let sample = GpuSample {
        gpu: GPU,
        sm_active: Some(640),
        sm_occupancy: None,
        dram_active: Some(10),
        used: Some(2 * GIB),
        foreign: vec![ForeignProcess {
            pid: 99,
            uid: Some(1000),
            command: Some("python3".to_owned()),
            bytes: GIB,
        }],
        jobs: vec![(JOB, GIB)],
    };
    let gpu = Gpu {
        index: GPU,
        uuid: "GPU-0".to_owned(),
        name: "NVIDIA A100".to_owned(),
        memory: 40 * GIB,
        tier: Tier::Utilisation,
        peers: vec![Peer {
            gpu: GpuIndex(1),
            link: Link::NvLink,
        }],
    };
    let events = [
        Event::Configured {
            policy: Policy::default(),
        },
        Event::MachineFound { gpus: vec![gpu] },
        Event::Submitted {
            job: JOB,
            uid: 1000,
            resources: resources(),
            learned: Learned {
                runs: 3,
                exact: true,
                peak: Some(GIB),
                overhead: Some(GIB / 2),
                profile: Some(PROFILE),
                solo_rates: vec![SOLO_RATE],
                work: Some(Quantiles {
                    p10: 1,
                    p50: 2,
                    p90: 3,
                }),
                work_measured: true,
            },
        },
        Event::Progress {
            job: JOB,
            process: PROCESS,
            fingerprint: 77,
            rate_uhz: 12_500_000,
            window_ms: 2_000,
        },
        Event::HostSampled {
            cpu_waits: Some(412),
            io_waits: None,
        },
        Event::CancelRequested { job: JOB, by: 0 },
        Event::Started {
            job: JOB,
            attempt: 1,
            gpus: vec![GPU],
        },
        Event::StartFailed {
            job: JOB,
            attempt: 1,
            error: "no such file".to_owned(),
        },
        Event::Ended {
            job: JOB,
            attempt: 1,
            exit: Exit::Signal(9),
        },
        Event::Ended {
            job: JOB,
            attempt: 2,
            exit: Exit::Unknown,
        },
        Event::JournalState { error: None },
        Event::ProcessAttached {
            job: JOB,
            process: PROCESS,
        },
        Event::ProcessUninstrumented {
            job: JOB,
            process: PROCESS,
        },
        Event::ProcessGone {
            job: JOB,
            process: PROCESS,
        },
        Event::FirstLaunch {
            job: JOB,
            process: PROCESS,
        },
        Event::Usage {
            job: JOB,
            process: PROCESS,
            launches: 3,
            gpus: vec![usage],
        },
        Event::Sampled { sample },
        Event::Grow {
            request: 1,
            job: JOB,
            process: PROCESS,
            gpu: GPU,
            bytes: GIB,
            held: 2 * GIB,
            try_number: 1,
        },
        Event::GrowAbandoned { request: 1 },
        Event::Woken,
    ];
    let stamped = events.map(|event| Stamped {
        at: Moment(1_700_000_000_000),
        event,
    });
    assert_stored("events.jsonl", &stamped);
}

#[test]
fn actions() {
    let answers = [
        GrowAnswer::Granted { limit: GIB },
        GrowAnswer::Wait { wait_ms: 20_000 },
        GrowAnswer::Denied {
            why: Denial::NoRoom {
                request: GIB,
                available: 1,
            },
        },
        GrowAnswer::Denied {
            why: Denial::BeyondDeclared {
                held: 2,
                declared: 1,
            },
        },
        GrowAnswer::Denied {
            why: Denial::NotHeld,
        },
        GrowAnswer::Denied {
            why: Denial::ExceedsCapacity {
                held: 2,
                capacity: 1,
            },
        },
        GrowAnswer::Denied {
            why: Denial::WaitedInVain {
                request: 1,
                waited_ms: 2,
            },
        },
        GrowAnswer::Denied {
            why: Denial::BeingEvicted { job: JOB },
        },
        GrowAnswer::Denied {
            why: Denial::Overdraft,
        },
    ];
    let stops = [
        StopReason::Cancelled { by: 1000 },
        StopReason::TimeLimit { limit_s: 60 },
        StopReason::Evicted {
            job: JOB,
            gpu: GPU,
            bytes: GIB,
        },
        StopReason::Rescue { gpu: GPU, over: 1 },
    ];
    let outcomes = [
        Outcome::Ok,
        Outcome::Failed {
            exit: Exit::Code(3),
        },
        Outcome::Oom {
            exit: Exit::Code(1),
            why: OomFinal::WasExclusive,
        },
        Outcome::Oom {
            exit: Exit::Code(1),
            why: OomFinal::ExceedsCapacity,
        },
        Outcome::Oom {
            exit: Exit::Code(1),
            why: OomFinal::NoRetriesLeft,
        },
        Outcome::Cancelled { by: 0 },
        Outcome::Timeout,
        Outcome::Lost,
        Outcome::StartFailed {
            error: "cwd is gone".to_owned(),
        },
    ];
    let retries = [
        RetryReason::Oom {
            gpu: GPU,
            request: 1,
            peak: 2,
            floor: 3,
            exclusive: true,
        },
        RetryReason::Evicted { job: JOB },
        RetryReason::Rescue,
    ];
    let mut actions = vec![
        Action::Start {
            job: JOB,
            attempt: 1,
            gpus: vec![GPU],
            virtual_total: Some(GIB),
        },
        Action::SetLease {
            process: PROCESS,
            gpu: GPU,
            limit: u64::MAX,
            oldest: true,
        },
        Action::WakeAt { at: Moment(5) },
    ];
    actions.extend(stops.map(|why| Action::Stop {
        job: JOB,
        attempt: 1,
        why,
        how: StopHow::Terminate,
    }));
    actions.push(Action::Stop {
        job: JOB,
        attempt: 1,
        why: StopReason::Cancelled { by: 0 },
        how: StopHow::Suspend {
            on_suspend: ON_SUSPEND,
        },
    });
    actions.push(Action::Learn {
        job: JOB,
        observed: Observed {
            gpu_model: "NVIDIA A100".to_owned(),
            completed: true,
            out_of_memory: false,
            peak: Some(GIB),
            overhead: Some(GIB / 2),
            profile: Some(PROFILE),
            solo_rates: vec![SOLO_RATE],
            ran_ms: 60_000,
            work_ms: Some(50_000),
            ended: Moment(5),
        },
    });
    actions.extend(answers.map(|answer| Action::Answer { request: 1, answer }));
    actions.extend(outcomes.map(|outcome| Action::Finish { job: JOB, outcome }));
    actions.extend(retries.map(|why| Action::Retry {
        job: JOB,
        attempt: 2,
        why,
    }));
    assert_stored("actions.jsonl", &actions);
}

#[test]
fn requests() {
    let submit = Submit {
        resources: resources(),
        requeue: None,
        retries: Some(1),
        on_suspend: Some(SuspendWish {
            signal: 10,
            grace_s: None,
        }),
        name: Some("a name".to_owned()),
        launch: Launch {
            argv: vec![
                "python".into(),
                aegis_common::bytes::ByteString(vec![0xff, 0x1b]),
            ],
            cwd: "/home/ana".into(),
            env: vec!["PATH=/usr/bin".into()],
            umask: 0o022,
        },
    };
    let requests = [
        Request::Hello {
            protocol: 1,
            version: "0.1.0".to_owned(),
        },
        Request::Submit(Box::new(submit)),
        Request::Queue {
            all: true,
            uid: Some(1000),
            limit: None,
        },
        Request::Status { job: JOB },
        Request::Explain { job: JOB },
        Request::Wait { jobs: vec![JOB] },
        Request::Cancel {
            jobs: vec![JOB, JobId(8)],
        },
        Request::Gpus,
        Request::Inspect {
            pid: Some(1),
            job: None,
        },
        Request::Doctor,
        Request::History {
            filter: HistoryFilter::default(),
        },
        Request::Forget {
            filter: HistoryFilter {
                all_users: true,
                jobs: vec![JOB],
                words: vec!["train.py".to_owned()],
            },
            everything: false,
        },
        Request::PastJobs {
            since: Moment(5),
            after: Some(JOB),
        },
    ];
    assert_stored("requests.jsonl", &requests);
}
