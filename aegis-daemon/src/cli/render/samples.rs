//! Views for tests.

use aegis_common::bytes::ByteString;
use aegis_common::event::ForeignProcess;
use aegis_common::id::{GpuIndex, JobId, Moment, ProcessKey};
use aegis_common::job::{Exit, Holding, JobState, Outcome, Phase, Resources, Slowdown};
use aegis_common::policy::Tier;
use aegis_common::reason::{Blocker, RetryReason};
use aegis_common::wire::{
    Attempt, Explanation, GpuView, Inspection, JobView, KindBytes, LedgerGpu, LedgerView, PaceView,
};

const GIB: u64 = 1 << 30;
/// 2026-01-02 03:04:05 UTC, as in the plain style.
pub(in crate::cli) const NOW: u64 = 1_767_323_045_000;
/// Terminal commands in every text an attacker controls.
pub(in crate::cli) const HOSTILE: &str = "evil\x1b]0;x\x07\u{9b}2J\u{202e}\r\n";

/// A moment some seconds ago.
pub(in crate::cli) fn ago(seconds: u64) -> Moment {
    Moment(NOW - seconds * 1000)
}

/// A waiting job.
pub(in crate::cli) fn pending(id: u64) -> JobView {
    JobView {
        id: JobId(id),
        name: "train".into(),
        uid: 1001,
        user: Some("ana".into()),
        argv: ["python", "train.py", "a b"].map(ByteString::from).to_vec(),
        cwd: ByteString::from("/home/ana/my work"),
        resources: Resources {
            gpus: 1,
            gpu_mem: Some(20 * GIB),
            priority: -5,
            exclusive: false,
            requeue: true,
            retries: 3,
            time_limit_s: Some(14_400),
            on_suspend: None,
        },
        state: JobState::Pending,
        submitted: ago(725),
        first_started: None,
        ended: None,
        attempts: vec![],
        holdings: vec![],
        floor: None,
        next_exclusive: false,
        evictions: 0,
        refusals: Vec::new(),
        position: Some(2),
        waits_for: Some("GPU 0: held exclusively by job 3".into()),
        learned: None,
        idle: Vec::new(),
        slowdown: None,
    }
}

/// An attempt that ran out of memory, unless told otherwise.
pub(in crate::cli) fn attempt(number: u32) -> Attempt {
    Attempt {
        number,
        gpus: vec![GpuIndex(0)],
        started: Some(ago(600)),
        ended: Some(ago(540)),
        exit: Some(Exit::Code(1)),
        stopped: None,
        retried: Some(RetryReason::Oom {
            gpu: GpuIndex(0),
            request: GIB,
            peak: 5 * GIB,
            floor: 7 * GIB,
            exclusive: false,
        }),
        peak: 5 * GIB,
        log: ByteString::from("/var/lib/aegis/logs/7.1.log"),
    }
}

/// A job in its second attempt on two GPUs.
pub(in crate::cli) fn running(id: u64) -> JobView {
    let holding = |gpu| Holding {
        gpu: GpuIndex(gpu),
        lease: 7 * GIB,
        overhead: GIB / 2,
        used: 6 * GIB,
        peak: 6 * GIB + GIB / 2,
    };
    JobView {
        state: JobState::Running {
            phase: Phase::Steady,
        },
        first_started: Some(ago(600)),
        attempts: vec![
            attempt(1),
            Attempt {
                gpus: vec![GpuIndex(0), GpuIndex(1)],
                started: Some(ago(500)),
                ended: None,
                exit: None,
                retried: None,
                peak: 6 * GIB + GIB / 2,
                log: ByteString::from("/var/lib/aegis/logs/7.2.log"),
                ..attempt(2)
            },
        ],
        holdings: vec![holding(0), holding(1)],
        slowdown: Some(Slowdown::Measured { permille: 1318 }),
        floor: Some(7 * GIB),
        refusals: Vec::new(),
        position: None,
        waits_for: None,
        ..pending(id)
    }
}

/// A job that is over.
pub(in crate::cli) fn done(id: u64, outcome: Outcome) -> JobView {
    JobView {
        state: JobState::Done { outcome },
        first_started: Some(ago(600)),
        ended: Some(ago(540)),
        attempts: vec![Attempt {
            retried: None,
            ..attempt(1)
        }],
        refusals: Vec::new(),
        position: None,
        waits_for: None,
        ..pending(id)
    }
}

/// A job whose every text is hostile.
pub(in crate::cli) fn hostile() -> JobView {
    JobView {
        name: HOSTILE.into(),
        user: Some(HOSTILE.into()),
        argv: vec![
            ByteString::from(HOSTILE),
            ByteString(b"\xff\x1b[31m".to_vec()),
        ],
        cwd: ByteString::from(HOSTILE),
        waits_for: Some(HOSTILE.into()),
        attempts: vec![Attempt {
            log: ByteString::from(HOSTILE),
            ..attempt(1)
        }],
        ..pending(9)
    }
}

/// Two obstacles and a history.
pub(in crate::cli) fn explanation(id: u64) -> Explanation {
    let gpu = GpuIndex(0);
    let memory = Blocker::GpuMemory {
        gpu,
        need: 20 * GIB,
        available: 11 * GIB,
        promised: 60 * GIB,
        unmanaged: GIB,
        guard: GIB,
    };
    let behind = Blocker::Behind {
        ahead: 1,
        next: JobId(5),
    };
    Explanation {
        job: JobId(id),
        state: JobState::Pending,
        blockers: vec![memory.into(), behind.into()],
        history: vec!["attempt 1 ran out of memory".into()],
    }
}

/// A shared GPU with a process nobody submitted.
pub(in crate::cli) fn gpu() -> GpuView {
    GpuView {
        index: GpuIndex(0),
        uuid: "GPU-0".into(),
        name: "NVIDIA H200".into(),
        memory: 140 * GIB,
        used: Some(12 * GIB),
        promised: 15 * GIB,
        unmanaged: 2 * GIB,
        guard: GIB,
        available: 122 * GIB,
        tier: Tier::Gpm,
        sm_active: Some(645),
        sm_occupancy: Some(200),
        dram_active: None,
        sample_age_ms: Some(100),
        residents: vec![JobId(7), JobId(8)],
        foreign: vec![ForeignProcess {
            pid: 4242,
            uid: Some(4_000_000_001),
            command: Some("jupyter".into()),
            bytes: 2 * GIB,
        }],
        lost: false,
        peers: Vec::new(),
    }
}

/// One process on one GPU.
pub(in crate::cli) fn inspection() -> Inspection {
    let account = LedgerGpu {
        gpu: Some(GpuIndex(0)),
        uuid: "GPU-0".into(),
        kinds: vec![
            KindBytes {
                kind: "device".into(),
                bytes: 5 * GIB,
            },
            KindBytes {
                kind: "pool".into(),
                bytes: GIB,
            },
        ],
        used: 6 * GIB,
        peak: 7 * GIB,
        inflight: 0,
        limit: Some(8 * GIB),
        nvml: Some(6 * GIB + GIB / 2),
        allocs: 120,
        frees: 20,
        denials: 3,
        driver_ooms: 0,
        episodes: 1,
    };
    Inspection {
        daemon: false,
        processes: vec![LedgerView {
            job: Some(JobId(7)),
            process: ProcessKey {
                pid: 4711,
                start_ticks: 1,
            },
            command: Some("python".into()),
            alive: true,
            kernels: 100_000,
            graphs: 2,
            copies: 30,
            memsets: 4,
            idle_ms: Some(1500),
            launched: true,
            unknown_lookups: 1,
            bypasses: vec![("capture".into(), 2)],
            captures_open: 0,
            gpus: vec![account],
            pace: Some(PaceView {
                fingerprint: 77,
                period: 120,
                rate_uhz: 12_345_678,
                window_ms: 3000,
                age_ms: 1500,
            }),
            warning: Some("used differs from NVML".into()),
        }],
    }
}
