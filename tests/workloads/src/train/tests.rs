//! The training loop on a fake GPU: when memory appears, what is launched, how a run ends.

use std::sync::atomic::AtomicBool;

use clap::Parser;

use super::*;
use crate::fake::FakeGpu;
use crate::kernel::KernelDemand;
use crate::units::{GIB, MIB};

#[derive(Parser)]
#[command(args_override_self = true)]
struct Cli {
    #[command(flatten)]
    train: TrainArgs,
}

fn small_plan(args: &[&str]) -> Plan {
    let base = [
        "workload",
        "--epochs",
        "2",
        "--steps",
        "4",
        "--eval-steps",
        "2",
        "--loader-ms",
        "0",
        "--weights",
        "80MiB",
        "--activations",
        "160MiB",
        "--eval-activations",
        "200MiB",
        "--batch",
        "4KiB",
        "--verify-every",
        "2",
    ];
    let cli = Cli::try_parse_from(base.iter().chain(args)).unwrap();
    Plan::resolve(Kind::Transformer, &cli.train).unwrap()
}

struct Ran {
    result: Result<Outcome, WorkloadError>,
    replicas: Vec<Replica<FakeGpu>>,
    events: Vec<(String, u64)>,
}

fn run_on(plan: &Plan, gpus: Vec<FakeGpu>, stop: bool) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress");
    let mut progress =
        Progress::open(Some(&path), plan.kind, String::new(), 0, plan.steps_total).unwrap();
    let mut replicas: Vec<_> = gpus.into_iter().map(|g| Replica::new(g, plan)).collect();
    let stop = AtomicBool::new(stop);
    let mut run = Run {
        plan,
        progress: &mut progress,
        peers: &mut Alone,
        stop: &stop,
        talks: true,
        step: 0,
        stopping: false,
    };
    let result = run.all(&mut replicas);
    let text = std::fs::read_to_string(&path).unwrap();
    let events = text
        .lines()
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            let event = value["event"].as_str().unwrap().to_owned();
            (event, value["step"].as_u64().unwrap())
        })
        .collect();
    Ran {
        result,
        replicas,
        events,
    }
}

#[test]
fn a_run_peaks_exactly_where_the_plan_says() {
    for args in [
        &[][..],
        &["--leak", "1MiB"],
        &["--grow-at", "7", "--grow-bytes", "64MiB"],
        &["--eval-steps", "0"],
        &["--gradients", "0", "--optimizer", "0"],
    ] {
        let plan = small_plan(args);
        let mut ran = run_on(&plan, vec![FakeGpu::new(4 * GIB)], false);
        assert_eq!(ran.result.unwrap(), Outcome::Done);
        assert_eq!(ran.replicas[0].device().peak(), plan.peak_bytes, "{args:?}");
        assert_eq!(ran.replicas[0].usage().peak_reserved, plan.peak_bytes);
    }
}

#[test]
fn optimizer_state_appears_only_after_the_first_step() {
    let plan = small_plan(&[]);
    let mut replica = Replica::new(FakeGpu::new(4 * GIB), &plan);
    replica.load().unwrap();
    assert_eq!(replica.device().used(), 82 * MIB);
    replica.forward_backward(1).unwrap();
    replica.wait(1).unwrap();
    let first = replica.device().used();
    assert_eq!(first, (82 + 80 + 160) * MIB);
    replica.update(1).unwrap();
    assert_eq!(replica.device().used(), first + 160 * MIB);
    replica.forward_backward(2).unwrap();
    replica.update(2).unwrap();
    assert_eq!(replica.device().used(), first + 160 * MIB);
}

#[test]
fn events_tell_every_step_and_phase() {
    let ran = run_on(&small_plan(&[]), vec![FakeGpu::new(4 * GIB)], false);
    let names: Vec<_> = ran.events.iter().map(|(e, s)| (e.as_str(), *s)).collect();
    assert_eq!(
        names,
        [
            ("first_launch", 0),
            ("step", 1),
            ("step", 2),
            ("step", 3),
            ("step", 4),
            ("epoch", 4),
            ("eval", 4),
            ("step", 5),
            ("step", 6),
            ("step", 7),
            ("step", 8),
            ("epoch", 8),
            ("eval", 8),
            ("done", 8),
        ]
    );
}

#[test]
fn real_exhaustion_ends_the_run_with_an_oom_event() {
    let plan = small_plan(&[
        "--grow-at",
        "3",
        "--grow-bytes",
        "1GiB",
        "--grow-steps",
        "2",
    ]);
    let ran = run_on(&plan, vec![FakeGpu::new(GIB)], false);
    let error = ran.result.unwrap_err();
    assert_eq!(error.exit_code(), 1);
    assert!(error.to_string().contains("CUDA out of memory"));
    assert_eq!(ran.events.last().unwrap(), &("oom".to_owned(), 3));
    assert!(!ran.events.iter().any(|(event, _)| event == "done"));
}

#[test]
fn every_gpu_of_a_data_parallel_run_works() {
    let plan = small_plan(&["--gpus", "2"]);
    let mut ran = run_on(&plan, vec![FakeGpu::new(GIB), FakeGpu::new(GIB)], false);
    assert_eq!(ran.result.unwrap(), Outcome::Done);
    let launched: Vec<Vec<KernelDemand>> = ran
        .replicas
        .iter_mut()
        .map(|r| r.device().launched.clone())
        .collect();
    // 24 + 1 kernels per training step, 24 per evaluation step.
    assert_eq!(launched[0].len(), 8 * 25 + 4 * 24);
    assert_eq!(launched[0], launched[1]);
}

#[test]
fn a_stop_request_checkpoints_after_the_step() {
    let ran = run_on(&small_plan(&[]), vec![FakeGpu::new(GIB)], true);
    assert_eq!(ran.result.unwrap(), Outcome::Checkpointed);
    assert_eq!(ran.events.last().unwrap(), &("checkpoint".to_owned(), 1));
}

#[test]
fn a_wrong_byte_is_noticed() {
    let plan = small_plan(&[]);
    let mut gpu = FakeGpu::new(GIB);
    // The batch's first byte at step 2 is another.
    let mut batch = crate::batch::Batch::new(plan.batch);
    batch.fill(2);
    gpu.corrupt = Some(!batch.bytes()[0]);
    let error = run_on(&plan, vec![gpu], false).result.unwrap_err();
    assert_eq!(error.exit_code(), 70);
    assert!(
        matches!(
            error,
            WorkloadError::Corrupt {
                step: 2,
                offset: 0,
                ..
            }
        ),
        "{error}"
    );
}
