//! Telemetry against the simulated driver's NVML (simulated driver, not NVIDIA's).

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::time::Duration;

use aegis_common::id::GpuIndex;
use aegis_common::policy::Tier;
use aegis_common::wire::{Check, CheckState};
use aegis_daemon::telemetry::{
    GpuFound, RawSample, Telemetry, TelemetryConfig, TelemetryEvent, checks,
};
use simgpu_core::config::MIB;
use simgpu_core::fault::{Fault, FaultKind};
use simgpu_core::kernel::Cost;
use simgpu_core::{GpuConfig, Machine, MachineConfig, self_identity};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Longer than any event here may take; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const GPU_LOST: u32 = 15;
const UNINITIALIZED: u32 = 1;
const NOT_SUPPORTED: u32 = 3;
const UNKNOWN: u32 = 999;

struct Rig {
    machine: Machine,
    library: PathBuf,
    _dir: tempfile::TempDir,
}

/// A machine of one GPU with GPM and one without.
fn rig() -> Rig {
    let gpm = GpuConfig {
        name: "Simulated H100".to_owned(),
        memory_bytes: 8192 * MIB,
        reserved_bytes: 256 * MIB,
        context_bytes: 300 * MIB,
        ..GpuConfig::default()
    };
    let plain = GpuConfig {
        name: "Simulated A40".to_owned(),
        supports_gpm: false,
        ..gpm.clone()
    };
    let config = MachineConfig {
        gpus: vec![gpm, plain],
        ..MachineConfig::default()
    };
    let dir = tempfile::tempdir().unwrap();
    let machine = Machine::create(dir.path(), &config).unwrap();
    // A copy of its own: the library finds the machine next to its file.
    let library = dir.path().join("libnvidia-ml.so.1");
    std::fs::copy(built_library(), &library).unwrap();
    Rig {
        machine,
        library,
        _dir: dir,
    }
}

fn built_library() -> PathBuf {
    static BUILD: Once = Once::new();
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let target = target.parent().unwrap().to_owned();
    BUILD.call_once(|| {
        let status = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--package",
                "simgpu-nvml",
                "--target-dir",
            ])
            .arg(&target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .unwrap();
        assert!(status.success(), "simgpu-nvml does not build");
    });
    target.join("debug/libsimgpu_nvml.so")
}

impl Rig {
    fn start(&self) -> (Telemetry, UnboundedReceiver<TelemetryEvent>) {
        let config = TelemetryConfig {
            nvml_library: Some(self.library.clone()),
            sample_interval: Duration::from_millis(500),
            ..TelemetryConfig::default()
        };
        let (sender, events) = unbounded_channel();
        (Telemetry::start(config, sender).unwrap(), events)
    }

    fn fail(&self, kind: FaultKind, code: u32, gpu: Option<usize>) {
        let fault = Fault {
            gpu,
            ..Fault::new(kind, code)
        };
        self.machine.faults().arm(fault).unwrap();
    }

    fn checks(&self) -> Vec<Check> {
        checks(Some(&self.library))
    }
}

/// The next event that `wanted` turns into something.
async fn next<T>(
    events: &mut UnboundedReceiver<TelemetryEvent>,
    mut wanted: impl FnMut(TelemetryEvent) -> Option<T>,
) -> T {
    let mut last = None;
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            let event = events.recv().await.expect("the telemetry thread ended");
            last = Some(event.clone());
            if let Some(found) = wanted(event) {
                return found;
            }
        }
    });
    found
        .await
        .unwrap_or_else(|_| panic!("waited in vain; last event: {last:?}"))
}

async fn next_gpus(events: &mut UnboundedReceiver<TelemetryEvent>) -> Vec<GpuFound> {
    next(events, |event| match event {
        TelemetryEvent::Gpus(gpus) => Some(gpus),
        _ => None,
    })
    .await
}

async fn next_sample(
    events: &mut UnboundedReceiver<TelemetryEvent>,
    gpu: u32,
    wanted: impl Fn(&RawSample) -> bool,
) -> RawSample {
    next(events, |event| match event {
        TelemetryEvent::Sample(sample) if sample.gpu == GpuIndex(gpu) => {
            Some(sample).filter(&wanted)
        }
        _ => None,
    })
    .await
}

/// A process of another pid that lives until it is dropped.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        let mut command = Command::new("cat");
        Self(command.stdin(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn gpus_are_found_with_their_tiers() {
    let rig = rig();
    let (_telemetry, mut events) = rig.start();
    let gpus = next_gpus(&mut events).await;
    let tiers: Vec<Tier> = gpus.iter().map(|gpu| gpu.tier).collect();
    assert_eq!(tiers, [Tier::Gpm, Tier::Utilisation]);
    for (index, (gpu, config)) in gpus.iter().zip(&rig.machine.config().gpus).enumerate() {
        assert_eq!(gpu.index.0 as usize, index);
        assert_eq!(gpu.name, config.name);
        assert_eq!(gpu.uuid, config.uuid);
        assert_eq!(gpu.uuid_bytes, config.uuid_bytes());
        assert_eq!((gpu.memory, gpu.reserved), (8192 * MIB, 256 * MIB));
    }
    for gpu in 0..2 {
        let sample = next_sample(&mut events, gpu, |sample| sample.sm_active.is_some()).await;
        assert_eq!(sample.sm_active, Some(0));
        assert_eq!(sample.sm_occupancy, (gpu == 0).then_some(0));
        assert_eq!(sample.used, Some(256 * MIB));
        assert_eq!(sample.processes, Some(vec![]));
    }
}

#[tokio::test]
async fn memory_is_seen_per_process_until_it_dies() {
    let rig = rig();
    let (telemetry, mut events) = rig.start();
    let (own, start) = self_identity();
    let process = rig.machine.register(own, start).unwrap();
    process.create_context(0).unwrap();
    process.reserve(0, 1024 * MIB).unwrap();
    let other = Sleeper::start();
    let pid = other.0.id();
    let start = aegis_daemon::lease::start_ticks(pid).unwrap();
    let process = rig.machine.register(pid, start).unwrap();
    process.reserve(0, 100 * MIB).unwrap();
    let mut both = vec![(own, 1324 * MIB), (pid, 100 * MIB)];
    both.sort_unstable();
    next_sample(&mut events, 0, |sample| {
        sample.processes.as_ref() == Some(&both) && sample.used == Some((1424 + 256) * MIB)
    })
    .await;
    drop(other);
    telemetry.request_refresh();
    next_sample(&mut events, 0, |sample| {
        sample.processes == Some(vec![(own, 1324 * MIB)]) && sample.used == Some((1324 + 256) * MIB)
    })
    .await;
}

#[tokio::test]
async fn activity_is_measured_on_both_tiers() {
    let rig = rig();
    let (_telemetry, mut events) = rig.start();
    let (pid, start) = self_identity();
    let process = rig.machine.register(pid, start).unwrap();
    let cost = Cost {
        duration_ns: 120_000_000_000,
        sm_active: 800,
        sm_occupancy: 300,
        dram_active: 400,
    };
    for gpu in 0..2 {
        process.create_context(gpu).unwrap();
        process.push(gpu, &cost);
    }
    let busy = next_sample(&mut events, 0, |sample| sample.sm_active >= Some(700)).await;
    assert!(
        busy.sm_occupancy
            .is_some_and(|value| (200..=300).contains(&value))
    );
    assert!(
        busy.dram_active
            .is_some_and(|value| (300..=400).contains(&value))
    );
    let busy = next_sample(&mut events, 1, |sample| sample.sm_active >= Some(900)).await;
    assert_eq!(busy.sm_occupancy, None);
}

#[tokio::test]
async fn values_that_are_no_values_are_never_idle() {
    let rig = rig();
    let (_telemetry, mut events) = rig.start();
    let known = |sample: &RawSample| sample.sm_active.is_some();
    let unknown = |sample: &RawSample| {
        (sample.sm_active, sample.sm_occupancy, sample.dram_active) == (None, None, None)
    };
    for (kind, code, gpu) in [
        (FaultKind::GpmNan, 1, 0),
        (FaultKind::GpmMetric, NOT_SUPPORTED, 0),
        (FaultKind::NvmlUtilization, UNKNOWN, 1),
    ] {
        next_sample(&mut events, gpu, known).await;
        rig.fail(kind, code, None);
        let sample = next_sample(&mut events, gpu, unknown).await;
        assert_eq!(sample.used, Some(256 * MIB), "{kind:?}");
        rig.machine.faults().clear();
    }
    for gpu in 0..2 {
        next_sample(&mut events, gpu, known).await;
    }
    rig.fail(FaultKind::NvmlProcessList, UNKNOWN, None);
    next_sample(&mut events, 0, |sample| sample.processes.is_none()).await;
    rig.machine.faults().clear();
    next_sample(&mut events, 0, |sample| sample.processes.is_some()).await;
    rig.fail(FaultKind::NvmlMemory, UNKNOWN, Some(0));
    next_sample(&mut events, 0, |sample| sample.used.is_none()).await;
}

#[tokio::test]
async fn counters_that_stand_still_are_unknown() {
    let rig = rig();
    let (_telemetry, mut events) = rig.start();
    let (pid, start) = self_identity();
    let process = rig.machine.register(pid, start).unwrap();
    process.create_context(0).unwrap();
    // Idle and frozen, while NVML sees kernels run.
    next_sample(&mut events, 0, |sample| sample.sm_active == Some(0)).await;
    rig.fail(FaultKind::GpmStale, 1, None);
    let cost = Cost {
        duration_ns: 120_000_000_000,
        sm_active: 777,
        sm_occupancy: 300,
        dram_active: 400,
    };
    process.push(0, &cost);
    next_sample(&mut events, 0, |sample| sample.sm_active.is_none()).await;
    rig.machine.faults().clear();
    next_sample(&mut events, 0, |sample| sample.sm_active >= Some(700)).await;
}

#[tokio::test]
async fn a_lost_gpu_is_no_longer_counted_and_the_others_go_on() {
    let rig = rig();
    let (_telemetry, mut events) = rig.start();
    assert_eq!(next_gpus(&mut events).await.len(), 2);
    rig.fail(FaultKind::NvmlDevice, GPU_LOST, Some(0));
    let gpus = next_gpus(&mut events).await;
    let [left] = &gpus[..] else {
        panic!("{gpus:?}")
    };
    assert_eq!(left.index, GpuIndex(1));
    next_sample(&mut events, 1, |sample| sample.sm_active.is_some()).await;
}

#[tokio::test]
async fn nvml_dying_and_coming_back_is_told() {
    let rig = rig();
    rig.fail(FaultKind::NvmlInit, UNKNOWN, None);
    let (_telemetry, mut events) = rig.start();
    let unavailable = |event| match event {
        TelemetryEvent::Unavailable { error } => Some(error),
        _ => None,
    };
    next(&mut events, unavailable).await;
    rig.machine.faults().clear();
    assert_eq!(next_gpus(&mut events).await.len(), 2);
    rig.fail(FaultKind::NvmlMemory, UNINITIALIZED, None);
    let error = next(&mut events, unavailable).await;
    assert!(error.contains("initialized"), "{error}");
    rig.machine.faults().clear();
    assert_eq!(next_gpus(&mut events).await.len(), 2);
}

#[tokio::test]
async fn sampling_goes_on_after_idling_and_ends_when_dropped() {
    let rig = rig();
    let (telemetry, mut events) = rig.start();
    next_sample(&mut events, 1, |_| true).await;
    telemetry.set_active(false);
    telemetry.set_active(true);
    for _ in 0..3 {
        next_sample(&mut events, 1, |sample| sample.sm_active.is_some()).await;
    }
    drop(telemetry);
    // The thread ends and with it the channel.
    let ended = async { while events.recv().await.is_some() {} };
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
}

#[tokio::test]
async fn the_doctor_names_what_is_wrong() {
    let rig = rig();
    let state = |checks: &[Check], name: &str| {
        let found = checks.iter().find(|check| check.name == name);
        found
            .unwrap_or_else(|| panic!("no {name} in {checks:?}"))
            .state
    };
    let (pid, start) = self_identity();
    rig.machine
        .register(pid, start)
        .unwrap()
        .create_context(0)
        .unwrap();
    let healthy = rig.checks();
    assert_eq!(state(&healthy, "NVML"), CheckState::Ok);
    assert_eq!(state(&healthy, "GPUs"), CheckState::Ok);
    assert_eq!(state(&healthy, "GPU 0 telemetry"), CheckState::Ok);
    assert_eq!(state(&healthy, "GPU 1 telemetry"), CheckState::Degraded);
    assert_eq!(state(&healthy, "GPU 0 processes"), CheckState::Ok);
    assert_eq!(state(&healthy, "GPU process ids"), CheckState::Ok);

    // A pid above every kernel's limit: a process of another PID namespace.
    rig.machine
        .faults()
        .set_foreign(4_200_000_000, 1, 10 * MIB)
        .unwrap();
    rig.fail(FaultKind::NvmlProcessList, UNKNOWN, Some(0));
    let sick = rig.checks();
    assert_eq!(state(&sick, "GPU 0 processes"), CheckState::Failed);
    assert_eq!(state(&sick, "GPU process ids"), CheckState::Failed);

    rig.machine.faults().clear();
    rig.fail(FaultKind::NvmlDevice, GPU_LOST, Some(1));
    assert_eq!(state(&rig.checks(), "GPUs"), CheckState::Degraded);
}
