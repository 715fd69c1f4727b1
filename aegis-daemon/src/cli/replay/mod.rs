//! `aegis replay`: what would a policy do with these jobs on that machine? Needs no daemon.

pub(in crate::cli) mod figures;
mod interference;
mod note;
mod past;
mod picture;
mod prepare;
mod source;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use serde::Serialize;

use self::figures::Row;
use self::interference::Choice;
use self::prepare::Prepared;
use self::source::TraceArg;
use super::context::Context;
use super::error::{CliError, warn};
use super::exit;
use super::render::replay as render;
use super::sanitise::sanitise;
use crate::config::quantity;
use crate::replay::generate::Shape;
use crate::replay::policy::{self, EXCLUSIVE};
use crate::replay::{Case, Report, parallel};

pub(super) const EXAMPLES: &str = "\
Jobs are simulated on a simulated machine, by the code that schedules real ones. MAKESPAN is from the \
first submission to the last end, JCT from a job's submission to its end, EXEC its running time; × is \
the ratio to exclusive use of the same trace, ± its 95 % confidence interval over the seeds. HURT counts \
attempts that ended for a job that came later, LOST is the share of GPU time whose work was thrown \
away, UNDONE counts jobs that failed or never ran.

Policies: exclusive, horus, horus-paper, lucid, lucid-paper, aegis-released, aegis-peaks, aegis-gate-50 \
(published), control, gentle, balanced, throughput, shortest (this scheduler's modes; control is \
mode = \"gate\", shortest is balanced with order = \"shortest\"). All start without a history of
commands.

Of a file's jobs, a window is replayed that the seed chooses. Jobs whose program is unknown get one of the \
built-in catalogue; what is assumed is said on standard error.

Examples:
  aegis replay --generate philly --policy control
  aegis replay --generate saturn --policy lucid,aegis-released,control --seeds 5
  aegis replay --generate open --load 0.8 --gpus 8 --gpu-mem 80 --policy balanced
  aegis replay --generate venus --policy control --interference additive:2 --json
  aegis replay --generate saturn --policy aegis-released,control --plot lanes.svg
  aegis replay --trace 60_job.csv --policy control --load 4
  aegis replay --trace jobs.trace:gavel --policy control --interference cells=oracle_throughputs.json
  aegis replay --trace history:30d --policy exclusive,control,balanced
";

/// Most GPUs of the simulated machine.
const MOST_GPUS: i64 = 64;
/// Most memory of one of them, GiB.
const MOST_GIB: u64 = 4_096;
const GIB: u64 = 1 << 30;

/// Options of `replay`.
#[derive(Args)]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    source: Source,
    /// Policies to compare; exclusive is always among them.
    #[arg(
        long,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "control",
        value_parser = policy_name
    )]
    policy: Vec<&'static str>,
    /// GPUs of the machine; without it 3, or as many as this server has where its history is
    /// replayed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_GPUS))]
    gpus: Option<u32>,
    /// Memory of each, GiB; without it 40, or the server's.
    #[arg(long, value_name = "GIB", value_parser = gpu_mem)]
    gpu_mem: Option<u64>,
    /// At most that many jobs, consecutive ones; without it 20 per GPU, of the server's history all.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    jobs: Option<u32>,
    /// What is random depends on this number only.
    #[arg(long, value_name = "S", default_value_t = 0, conflicts_with = "seeds")]
    seed: u64,
    /// The means over that many seeds, from 0.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    seeds: Option<u64>,
    /// Divides the times between submissions; for open and for traces of run times alone, the share
    /// of the machine that is asked for.
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = load)]
    load: f64,
    /// What sharing costs: additive (fitted on measured pairs), asymmetric (a formula of the
    /// programs' activity), or cells=FILE (measured pairs: Gavel's oracle_throughputs.json, or a
    /// table program,beside,slowdown); a factor scales it.
    #[arg(
        long,
        value_name = "MODEL[:FACTOR]",
        default_value = "additive",
        value_parser = Choice::parse
    )]
    interference: Choice,
    /// Draws the time lines of all policies (of the first seed) into this file, as SVG.
    #[arg(long, value_name = "FILE.svg", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    plot: Option<PathBuf>,
}

/// The jobs.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Source {
    /// Jobs of a file (formats: philly, runtimes, gavel, muri, tiresias; recognised by its header),
    /// or history:SPAN: those that ended on this server within that time.
    #[arg(
        long,
        value_name = "FILE[:FORMAT]",
        value_parser = OsStringValueParser::new().try_map(|text| TraceArg::parse(&text))
    )]
    trace: Option<TraceArg>,
    /// Jobs like those of a published production trace: philly, saturn, venus; or open: Poisson
    /// arrivals.
    #[arg(long, value_name = "SHAPE", value_parser = shape)]
    generate: Option<Shape>,
}

/// The `--json` document.
#[derive(Serialize)]
struct Document<'a> {
    trace: &'a str,
    /// Of a trace.
    jobs: usize,
    gpus: u32,
    /// Bytes.
    gpu_mem: u64,
    seeds: Vec<u64>,
    load: f64,
    interference: &'static str,
    interference_factor: f64,
    /// What had to be assumed about the jobs.
    assumptions: &'a [String],
    policies: &'a [Row],
}

/// Replays and shows.
pub(super) fn run(args: &ReplayArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let Prepared { name, cases, notes } = prepare::prepare(args, cx)?;
    for note in &notes {
        warn(&format!("aegis: {}", sanitise(note)));
    }
    let mut policies = vec![EXCLUSIVE];
    for &policy in &args.policy {
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }
    let rows = compare(&cases, &policies);
    if let (Some(path), Some(case)) = (&args.plot, cases.first()) {
        picture::draw(path, &name, case, &policies)?;
    }
    if cx.out.json {
        let first = cases.first();
        cx.out.document(&Document {
            trace: &name,
            jobs: first.map_or(0, |case| case.trace.jobs.len()),
            gpus: first.map_or(0, |case| case.machine.gpus),
            gpu_mem: first.map_or(0, |case| case.machine.gpu_memory),
            seeds: cases.iter().map(|case| case.seed).collect(),
            load: args.load,
            interference: args.interference.name(),
            interference_factor: args.interference.factor,
            assumptions: &notes,
            policies: &rows,
        })?;
    } else {
        let text = render::table(&rows, &cx.out.style);
        cx.out.text(&text)?;
    }
    Ok(exit::OK)
}

/// All policies on all cases; the first policy is what the others are relative to.
fn compare(cases: &[Case], policies: &[&'static str]) -> Vec<Row> {
    let work: Vec<(&'static str, &Case)> = policies
        .iter()
        .flat_map(|&policy| cases.iter().map(move |case| (policy, case)))
        .collect();
    let progress = Progress::new(work.len());
    let reports = parallel(
        &work,
        |(policy, case)| Report::new(&case.replay(policy)),
        |done| progress.show(done),
    );
    progress.clear();
    let reports: Vec<&Report> = reports.iter().collect();
    let of_policy: Vec<&[&Report]> = reports.chunks(cases.len().max(1)).collect();
    let exclusive = of_policy.first().copied().unwrap_or_default();
    policies
        .iter()
        .zip(&of_policy)
        .map(|(policy, reports)| Row::new(policy, reports, exclusive))
        .collect()
}

/// How far it is, on a terminal.
struct Progress {
    all: usize,
    shown: bool,
}

impl Progress {
    fn new(all: usize) -> Self {
        let shown = all > 1 && std::io::stderr().is_terminal();
        Self { all, shown }
    }

    fn show(&self, done: usize) {
        if self.shown {
            let all = self.all;
            let _ = write!(std::io::stderr(), "\r{done} of {all} replays");
        }
    }

    fn clear(&self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn shape(text: &str) -> Result<Shape, String> {
    Shape::named(text).ok_or_else(|| "the shapes are philly, saturn, venus and open".to_owned())
}

fn policy_name(text: &str) -> Result<&'static str, String> {
    policy::named(text).map_err(|error| error.to_string())
}

/// GiB as a number, or any size with its unit.
fn gpu_mem(text: &str) -> Result<u64, String> {
    let gib = match text.parse() {
        Ok(gib) => gib,
        Err(_) => quantity::size(text)? / GIB,
    };
    if !(1..=MOST_GIB).contains(&gib) {
        return Err(format!("a GPU has between 1 and {MOST_GIB} GiB"));
    }
    Ok(gib)
}

fn load(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(load) if (0.001..=1_000.0).contains(&load) => Ok(load),
        _ => Err("the load is a number between 0.001 and 1000; 1 leaves the trace as it is".into()),
    }
}
