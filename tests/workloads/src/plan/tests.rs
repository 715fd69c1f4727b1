//! Parameters: the presets are what the documentation says, and bad ones are named.

use clap::Parser;

use super::*;
use crate::units::{GIB, MIB};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    train: TrainArgs,
}

fn plan(kind: Kind, args: &[&str]) -> Result<Plan, WorkloadError> {
    let argv = std::iter::once("workload").chain(args.iter().copied());
    Plan::resolve(kind, &Cli::try_parse_from(argv).unwrap().train)
}

fn rejected(kind: Kind, args: &[&str]) -> String {
    plan(kind, args).unwrap_err().to_string()
}

#[test]
fn presets_peak_where_documented() {
    for (kind, gib) in [
        (Kind::Vision, 3),
        (Kind::Transformer, 6),
        (Kind::Recommender, 2),
        (Kind::Llm, 14),
    ] {
        let peak = plan(kind, &[]).unwrap().peak_bytes;
        let most = gib * GIB;
        assert!(peak <= most && peak > most - 64 * MIB, "{kind:?}: {peak}");
    }
}

#[test]
fn presets_take_five_to_ten_seconds_alone() {
    for kind in [
        Kind::Vision,
        Kind::Transformer,
        Kind::Recommender,
        Kind::Llm,
    ] {
        let p = plan(kind, &[]).unwrap();
        let step_ms = u64::from(p.kernels) * p.kernel_ns / 1_000_000 + p.loader_ms;
        let eval_ms = u64::from(p.epochs * p.eval_steps * p.kernels) * p.kernel_ns / 2_000_000;
        let seconds = p.startup_s * 1000.0 + (p.steps_total * step_ms + eval_ms) as f64;
        assert!(
            (5_000.0..10_000.0).contains(&seconds),
            "{kind:?}: {seconds} ms"
        );
    }
}

#[test]
fn derived_defaults_follow_what_is_given() {
    let p = plan(Kind::Llm, &["--weights", "1GiB", "--activations", "1GiB"]).unwrap();
    assert_eq!(p.gradients, GIB);
    assert_eq!(p.optimizer, 2 * GIB);
    assert_eq!(p.eval_activations, GIB + GIB / 4);
}

#[test]
fn saturate_fills_the_gpu() {
    let p = plan(Kind::Transformer, &["--saturate"]).unwrap();
    assert!(p.sm_active >= 950 && p.sm_occupancy == 900);
}

#[test]
fn growth_is_spread_and_counted() {
    let args = [
        "--grow-at",
        "10",
        "--grow-bytes",
        "4GiB",
        "--grow-steps",
        "4",
    ];
    let grown = plan(Kind::Vision, &args).unwrap();
    let total: u64 = (0..=grown.steps_total)
        .filter_map(|step| grown.growth(step))
        .sum();
    assert_eq!(total, 4 * GIB);
    assert_eq!(grown.growth(9), None);
    assert_eq!(grown.growth(10), Some(GIB));
    assert_eq!(grown.growth(14), None);
    let base = plan(Kind::Vision, &[]).unwrap();
    assert_eq!(grown.peak_bytes, base.peak_bytes + 4 * GIB);
    assert!((0..=base.steps_total).all(|step| base.growth(step).is_none()));
}

#[test]
fn bad_parameters_name_the_option() {
    assert!(rejected(Kind::Vision, &["--steps", "0"]).starts_with("--steps: "));
    assert!(rejected(Kind::Vision, &["--gpus", "0"]).starts_with("--gpus: "));
    assert!(rejected(Kind::Vision, &["--batch", "0"]).starts_with("--batch: "));
    assert!(rejected(Kind::Vision, &["--weights", "2TiB"]).starts_with("--weights: "));
    assert!(rejected(Kind::Vision, &["--eval-activations", "1MiB"]).contains("at least"));
    assert!(rejected(Kind::Vision, &["--grow-at", "0", "--grow-bytes", "1"]).contains("from 1"));
    assert!(rejected(Kind::Vision, &["--grow-at", "121", "--grow-bytes", "1"]).contains("120"));
    assert!(rejected(Kind::Vision, &["--gpus", "2", "--rank", "2"]).starts_with("--rank: "));
}
