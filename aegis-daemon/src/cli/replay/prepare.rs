//! From the arguments to traces on machines.

use aegis_common::wire::{ErrorCode, Failure};

use super::super::Context;
use super::super::error::{CliError, hinted};
use super::ReplayArgs;
use super::note::{Note, merge, text};
use super::past;
use super::source::{self, TraceArg};
use crate::replay::generate::{Shape, generate};
use crate::replay::trace::import::ImportedJob;
use crate::replay::trace::{Assembly, Assumed, PastAssumed, assemble, from_past};
use crate::replay::{Case, MachineConfig, Trace};

/// Jobs per GPU where nothing else is asked for: the published windows have 60 for 3 GPUs.
const JOBS_PER_GPU: u32 = 20;
/// The published testbed.
const GPUS: u32 = 3;
const GPU_GIB: u64 = 40;

/// What is replayed.
pub(super) struct Prepared {
    /// The trace's name.
    pub name: String,
    /// One per seed.
    pub cases: Vec<Case>,
    /// What had to be assumed.
    pub notes: Vec<String>,
}

/// The jobs before a seed is known.
enum Jobs {
    Generated(Shape),
    Imported(Vec<ImportedJob>),
    Past(past::Past),
}

/// Reads or asks for the jobs and makes a case per seed.
pub(super) fn prepare(args: &ReplayArgs, cx: &Context<'_>) -> Result<Prepared, CliError> {
    let (name, jobs) = match (&args.source.trace, args.source.generate) {
        (Some(trace), _) => {
            let jobs = match trace {
                TraceArg::History(span) => Jobs::Past(past::ask(cx, *span)?),
                TraceArg::File(path, format) => Jobs::Imported(source::import(path, *format)?),
            };
            (trace.name(), jobs)
        }
        (None, shape) => {
            let shape = shape.unwrap_or(Shape::Philly);
            (shape.name().to_owned(), Jobs::Generated(shape))
        }
    };
    let pairs = args.interference.pairs()?;
    let mut machine = machine(args, &jobs);
    machine.interference_factor *= args.interference.factor;
    let mut cases = Vec::new();
    let mut notes: Vec<Note> = Vec::new();
    let seeds = args
        .seeds
        .map_or(args.seed..args.seed.saturating_add(1), |seeds| 0..seeds);
    for seed in seeds {
        let (trace, told) = trace(args, &name, &jobs, &machine, seed);
        if trace.jobs.is_empty() {
            return Err(nothing_left(machine.gpus).into());
        }
        merge(&mut notes, told);
        let mut machine = machine.clone();
        machine.interference = args.interference.truth(&trace, &pairs)?;
        cases.push(Case {
            trace,
            machine,
            seed,
        });
    }
    let notes = text(&notes);
    Ok(Prepared { name, cases, notes })
}

fn machine(args: &ReplayArgs, jobs: &Jobs) -> MachineConfig {
    let server = match jobs {
        Jobs::Past(past) => past.gpus.as_slice(),
        Jobs::Generated(_) | Jobs::Imported(_) => &[],
    };
    let count = u32::try_from(server.len()).ok().filter(|count| *count > 0);
    let gpus = args.gpus.or(count).unwrap_or(GPUS);
    let mut machine = MachineConfig::new(gpus, args.gpu_mem.unwrap_or(GPU_GIB));
    // The simulated GPUs are all alike: as large as the server's smallest.
    let memory = server.iter().map(|gpu| gpu.memory).min();
    if let (None, Some(memory)) = (args.gpu_mem, memory) {
        machine.gpu_memory = memory;
    }
    machine
}

fn trace(
    args: &ReplayArgs,
    name: &str,
    jobs: &Jobs,
    machine: &MachineConfig,
    seed: u64,
) -> (Trace, Vec<Note>) {
    let usual = JOBS_PER_GPU.saturating_mul(machine.gpus);
    let how = Assembly {
        gpus: machine.gpus,
        gpu_memory: machine.gpu_memory,
        jobs: Some(args.jobs.unwrap_or(usual) as usize),
        load: args.load,
        seed,
    };
    match jobs {
        Jobs::Generated(shape) => {
            let count = args.jobs.unwrap_or(usual) as usize;
            let trace = generate(*shape, count, machine.gpus, args.load, seed);
            (trace, Vec::new())
        }
        Jobs::Imported(found) => {
            let (trace, assumed) = assemble(name, found, how);
            let notes = imported(&assumed, trace.jobs.len());
            (trace, notes)
        }
        Jobs::Past(past) => {
            let jobs = args.jobs.map(|jobs| jobs as usize);
            let (trace, assumed) = from_past(&past.jobs, Assembly { jobs, ..how });
            let notes = remembered(&assumed, trace.jobs.len());
            (trace, notes)
        }
    }
}

fn nothing_left(gpus: u32) -> Failure {
    hinted(
        ErrorCode::BadRequest,
        format!("no job of the trace ran and fits on {gpus} GPUs"),
        "give the machine more with --gpus",
    )
}

fn imported(assumed: &Assumed, jobs: usize) -> Vec<Note> {
    vec![
        Note::jobs(jobs, format!("of {} jobs are replayed", assumed.found)),
        Note::jobs(
            assumed.too_wide,
            "jobs want more GPUs than the machine has and are left out",
        ),
        Note::jobs(
            assumed.drawn,
            "jobs run a program drawn from the catalogue: the file does not tell a known one",
        ),
        Note::sentence(
            assumed.arrivals,
            "submissions are Poisson: the file does not tell them",
        ),
    ]
}

fn remembered(assumed: &PastAssumed, jobs: usize) -> Vec<Note> {
    vec![
        Note::jobs(jobs, format!("of {} jobs are replayed", assumed.found)),
        Note::jobs(assumed.never_ran, "jobs never ran and are left out"),
        Note::jobs(
            assumed.too_wide,
            "jobs want more GPUs than the machine has and are left out",
        ),
        Note::jobs(
            assumed.failed,
            "jobs failed or were stopped: they count as work of the length they ran",
        ),
        Note::jobs(
            assumed.without_peak,
            "jobs have the memory of a catalogue program: theirs was never seen",
        ),
        Note::jobs(
            assumed.without_profile,
            "jobs keep GPUs as busy as a catalogue program: they were never seen alone",
        ),
        Note::jobs(
            assumed.without_slowdown,
            "jobs count their running time as the time alone: their slowdown is not known",
        ),
        Note::sentence(
            true,
            "telemetry is GPM and the scheduler's settings are the defaults, whatever the \
             server's are",
        ),
    ]
}
