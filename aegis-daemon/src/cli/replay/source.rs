//! The jobs to replay.

use super::ReplayArgs;
use crate::replay::generate::generate;
use crate::replay::{Case, MachineConfig};

/// Jobs per GPU where nothing else is asked for: the published windows have 60 for 3 GPUs.
const JOBS_PER_GPU: u32 = 20;

/// A case per seed.
pub(super) fn cases(args: &ReplayArgs) -> Vec<Case> {
    let mut machine = MachineConfig::new(args.gpus, args.gpu_mem);
    machine.interference = args.interference.truth();
    machine.interference_factor *= args.interference.factor;
    let jobs = args.jobs.unwrap_or(JOBS_PER_GPU * args.gpus) as usize;
    let seeds = args
        .seeds
        .map_or(args.seed..args.seed.saturating_add(1), |seeds| 0..seeds);
    seeds
        .map(|seed| Case {
            trace: generate(args.generate, jobs, args.gpus, args.load, seed),
            machine: machine.clone(),
            seed,
        })
        .collect()
}
