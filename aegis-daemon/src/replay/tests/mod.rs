//! Replay against its own promises.

mod promises;

use super::workload::{Memory, Workload};

/// A program with that SM activity and peak in GiB: 100 s of work after a start of 8 s.
pub(super) fn workload(name: &str, sm_active: f64, gib: u64) -> Workload {
    Workload {
        name: name.to_owned(),
        gpus: 1,
        unused_gpus: 0,
        peaks: vec![gib << 30],
        utilisation: (sm_active * 1.3).min(0.99),
        sm_active,
        sm_occupancy: sm_active * 0.4,
        dram_active: sm_active * 0.3,
        solo_s: 100.0,
        startup_s: 8.0,
        log_sensitivity: 0.1,
        log_pressure: 0.1,
        memory: Memory {
            at_start: 0.4,
            after_first_steps: 0.9,
            first_steps_s: 5.0,
            peak_at: 0.5,
        },
        cpu_cores: 4.0,
        period_s: 0.2,
        launches: 400,
    }
}
