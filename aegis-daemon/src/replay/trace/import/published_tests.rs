//! The importers on the published files. They stay where they are: licences differ.
#![cfg(test)]

use std::path::Path;

use super::{Format, ImportedJob, pair_slowdowns};

/// A file of the shared data; `None`, reported as skipped, where it is not on this machine.
fn published(name: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/data")
        .join(name);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        println!("SKIPPED: there is no {}", path.display());
    }
    text
}

/// Format, jobs, and the sum of their GPU-hours.
fn read(name: &str) -> Option<(Format, Vec<ImportedJob>, f64)> {
    let text = published(name)?;
    let format = Format::recognise(&text).unwrap();
    let jobs = format.parse(&text).unwrap();
    let hours = jobs
        .iter()
        .map(|job| f64::from(job.gpus) * job.duration_s / 3600.0);
    let hours = hours.sum();
    Some((format, jobs, hours))
}

#[test]
fn philly() {
    if let Some((format, jobs, _)) = read("gavel/philly_jobs_recovered.csv") {
        assert_eq!((format, jobs.len()), (Format::Philly, 15_264));
        assert_eq!(jobs.iter().filter(|job| job.gpus <= 2).count(), 10_943);
    }
}

#[test]
fn philly_run_times() {
    if let Some((format, jobs, _)) = read("alibaba-gpu-v2020/philly_runtime.csv") {
        assert_eq!((format, jobs.len()), (Format::Runtimes, 83_154));
    }
}

#[test]
fn yarn() {
    if let Some((format, jobs, _)) = read("tiresias/yarn-gput1000.csv") {
        assert_eq!((format, jobs.len()), (Format::Runtimes, 1_001));
    }
}

#[test]
fn tiresias() {
    if let Some((format, jobs, _)) = read("tiresias/60_job.csv") {
        assert_eq!((format, jobs.len()), (Format::Tiresias, 60));
    }
}

#[test]
fn muri() {
    for (name, count) in [
        ("muri/trace1.csv", 1_494),
        ("muri/trace2.csv", 5_755),
        ("muri/trace3.csv", 992),
        ("muri/trace4.csv", 2_638),
        ("muri/cluster_trace.csv", 400),
    ] {
        if let Some((format, jobs, _)) = read(name) {
            assert_eq!((format, jobs.len()), (Format::Muri, count), "{name}");
        }
    }
}

#[test]
fn gavel() {
    for (name, count) in [
        ("gavel/physical_artifact_evaluation.trace", 15),
        ("gavel/physical_max_min_fairness.trace", 96),
        ("gavel/physical_medium_test.trace", 20),
        ("gavel/physical_minimize_makespan.trace", 100),
    ] {
        if let Some((format, jobs, hours)) = read(name) {
            assert_eq!((format, jobs.len()), (Format::Gavel, count), "{name}");
            assert!(hours > 1.0, "{name}: {hours} h");
        }
    }
}

#[test]
fn pairs() {
    if let Some(text) = published("gavel/oracle_throughputs.json") {
        let pairs = pair_slowdowns(&text).unwrap();
        let same = pairs.iter().find(|pair| {
            let name = "ResNet-18 (batch size 16)";
            pair.program == name && pair.beside == name
        });
        // 77.3 steps a second alone, 55.4 beside itself.
        assert!((same.unwrap().slowdown - 1.395).abs() < 0.01);
        assert!((500..=676).contains(&pairs.len()), "{}", pairs.len());
    }
}
