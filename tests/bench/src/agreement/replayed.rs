//! The mix in replay: submissions and times alone as the daemon's journal of the exclusive run has
//! them, interference by the formula of the simulated driver.

use aegis_daemon::replay::trace::{Trace, TraceJob};
use aegis_daemon::replay::workload::{Memory, Workload};
use aegis_daemon::replay::{Interference, MachineConfig, Report, run};
use aegis_daemon::scheduler::Core;

use super::live::{GPU_GIB, GPUS, Ran};
use super::mix::{MIX, MixJob};
use super::rules::{Rules, SCALE};

const MIB: u64 = 1 << 20;
/// Most work that processes get together on the simulated driver: `simgpu_core`'s bound.
const MOST_TOGETHER: f64 = 1.58;

/// The trace of the exclusive run.
pub(super) fn trace(alone: &[Ran]) -> Trace {
    let jobs = alone.iter().enumerate().map(|(index, ran)| TraceJob {
        submit_ms: ran.submitted_ms * SCALE,
        user: 0,
        gpus: 1,
        workload: index,
        solo_s: None,
        time_limit_s: None,
        gpu_mem: None,
    });
    Trace {
        name: "mix".to_owned(),
        jobs: jobs.collect(),
        workloads: alone
            .iter()
            .zip(&MIX)
            .map(|(ran, job)| workload(ran, job))
            .collect(),
    }
}

fn workload(ran: &Ran, job: &MixJob) -> Workload {
    let scale = SCALE as f64;
    let took_s = ran.ran_ms as f64 / 1e3;
    let preset = job.preset;
    let [sm_active, sm_occupancy, dram_active] = job.demand;
    Workload {
        name: job.kind.to_owned(),
        gpus: 1,
        unused_gpus: 0,
        peaks: vec![preset.peak_mib * MIB],
        utilisation: 1.0,
        sm_active,
        sm_occupancy,
        dram_active,
        solo_s: (took_s - preset.startup_s).max(0.1) * scale,
        startup_s: preset.startup_s * scale,
        log_sensitivity: 0.0,
        log_pressure: 0.0,
        memory: Memory {
            at_start: preset.weights_mib as f64 / preset.peak_mib as f64,
            after_first_steps: preset.training_mib as f64 / preset.peak_mib as f64,
            first_steps_s: 0.2 * scale,
            peak_at: preset.peak_at,
        },
        cpu_cores: 0.0,
        period_s: 0.05 * scale,
        launches: 20,
    }
}

/// The report of the trace under these rules.
pub(super) fn replay(trace: &Trace, rules: Rules) -> Report {
    let gpus = u32::try_from(GPUS).unwrap_or(u32::MAX);
    let config = MachineConfig {
        policy: rules.policy(),
        interference: Interference::Asymmetric,
        interference_factor: 1.0,
        telemetry_factor: 1.0,
        pair_noise: 0.0,
        busy_cap: MOST_TOGETHER,
        context: 300 * MIB,
        driver_reserve: 512 * MIB,
        launch_ms: 10 * SCALE,
        exit_ms: SCALE,
        ..MachineConfig::new(gpus, GPU_GIB)
    };
    Report::new(&run(trace, &config, Box::new(Core::new()), 1))
}
