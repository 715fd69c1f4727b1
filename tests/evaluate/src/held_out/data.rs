//! Measured pairs, read from where the project keeps public data.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Memory of the GPU that Lucid measured on, MiB.
const LUCID_MIB: f64 = 24_576.0;

/// A set of measured pairs.
#[derive(Debug)]
pub(super) struct Data {
    pub(super) name: &'static str,
    pub(super) programs: Vec<Program>,
    pub(super) pairs: Vec<Pair>,
    /// How busy its programs are alone is known.
    pub(super) profiled: bool,
}

/// A program alone.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    /// Its model, whatever the batch.
    pub(super) family: String,
    /// Share of time in which it keeps the GPU busy.
    pub(super) busy: f64,
    /// The same of the memory's interface.
    pub(super) dram: f64,
    /// Share of the memory.
    pub(super) memory: f64,
}

/// One program beside another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) mine: usize,
    pub(super) other: usize,
    /// Relative to alone, at most 1: more is noise.
    pub(super) speed: f64,
}

/// Lucid's RTX 3090 pairs: `colocate_info.csv` with the profiles of `single_data.csv`.
///
/// # Errors
/// A file cannot be read.
pub(super) fn lucid(folder: &Path) -> Result<Data> {
    let (mut programs, mut places) = (Vec::new(), BTreeMap::new());
    for row in rows(&folder.join("lucid/single_data.csv"))? {
        let [model, dataset, batch, amp, _, busy, dram, mib, ..] = &row[..] else {
            continue;
        };
        places.insert(
            [model, dataset, batch, amp].map(Clone::clone),
            programs.len(),
        );
        programs.push(Program {
            family: model.clone(),
            busy: number(busy) / 100.0,
            dram: number(dram) / 100.0,
            memory: number(mib) / LUCID_MIB,
        });
    }
    let mut pairs = Vec::new();
    for row in rows(&folder.join("lucid/colocate_info.csv"))? {
        let [_, m1, d1, _, b1, a1, s1, m2, d2, _, b2, a2, s2, ..] = &row[..] else {
            continue;
        };
        let place = |key: [&String; 4]| places.get(&key.map(Clone::clone)).copied();
        if let (Some(one), Some(two)) = (place([m1, d1, b1, a1]), place([m2, d2, b2, a2])) {
            pairs.extend(pair(one, two, number(s1)));
            pairs.extend(pair(two, one, number(s2)));
        }
    }
    Ok(Data {
        name: "Lucid 3090",
        programs,
        pairs,
        profiled: true,
    })
}

/// Gavel's pairs on one of its GPUs: `oracle_throughputs.json`.
///
/// # Errors
/// The file cannot be read or is not what it was.
pub(super) fn gavel(folder: &Path, gpu: &str, name: &'static str) -> Result<Data> {
    type Throughputs = BTreeMap<String, BTreeMap<String, serde_json::Value>>;
    let path = folder.join("gavel/oracle_throughputs.json");
    let text = read(&path)?;
    let all: BTreeMap<String, Throughputs> =
        serde_json::from_str(&text).with_context(|| format!("{}", path.display()))?;
    let jobs = all
        .get(gpu)
        .with_context(|| format!("{}: no `{gpu}`", path.display()))?;
    let alone = |job: &str| jobs.get(job)?.get("null")?.as_f64();
    let programs = jobs.keys().map(|job| Program {
        family: job.split(" (").next().unwrap_or(job).to_owned(),
        ..Program::default()
    });
    let mut pairs = Vec::new();
    for (mine, (job, others)) in jobs.iter().enumerate() {
        for (other, partner) in jobs.keys().enumerate() {
            let speed = others.get(partner).and_then(|both| both.get(0)?.as_f64());
            if let (Some(speed), Some(alone)) = (speed, alone(job)) {
                // Out of memory is told as no speed at all.
                pairs.extend(pair(mine, other, speed / alone));
            }
        }
    }
    Ok(Data {
        name,
        programs: programs.collect(),
        pairs,
        profiled: false,
    })
}

fn pair(mine: usize, other: usize, speed: f64) -> Option<Pair> {
    let speed = speed.min(1.0);
    (speed > 0.0).then_some(Pair { mine, other, speed })
}

/// The fields of a file without quotes, its heading left out.
fn rows(path: &Path) -> Result<Vec<Vec<String>>> {
    let text = read(path)?;
    let fields = |line: &str| {
        line.split(',')
            .map(|field| field.trim().to_owned())
            .collect()
    };
    Ok(text.lines().skip(1).map(fields).collect())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| {
        format!(
            "{}: the measured pairs are not part of the project; name their folder with --data",
            path.display()
        )
    })
}

/// 0 for what is no number.
fn number(field: &str) -> f64 {
    field.parse().unwrap_or(0.0)
}
