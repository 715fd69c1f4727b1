//! How many simulated jobs a second replay manages: `cargo run --release --example replay_speed`.

use std::time::Instant;

use aegis_daemon::replay::scheduler::Scheduler;
use aegis_daemon::replay::trace::{Trace, TraceJob};
use aegis_daemon::replay::workload::{Memory, Workload};
use aegis_daemon::replay::{MachineConfig, Report, run};
use aegis_daemon::scheduler::Core;

/// Programs like those published with AEGIS: from tiny to the whole GPU.
fn workload(index: u64) -> Workload {
    let share = (index * 7 % 20) as f64 / 20.0;
    let sm_active = 0.1 + 0.8 * share;
    Workload {
        name: format!("w{index}"),
        gpus: 1,
        unused_gpus: 0,
        peaks: vec![((0.6 + 32.0 * share * share) * f64::from(1 << 30)) as u64; 2],
        utilisation: (sm_active * 1.4).min(0.98),
        sm_active,
        sm_occupancy: sm_active * 0.4,
        dram_active: sm_active * 0.3,
        solo_s: 200.0 + 4_500.0 * ((index * 13 % 17) as f64 / 17.0),
        startup_s: 8.0,
        log_sensitivity: 0.3 - 0.4 * share,
        log_pressure: 0.5 * share - 0.2,
        memory: Memory {
            at_start: 0.4,
            after_first_steps: 0.95,
            first_steps_s: 10.0,
            peak_at: 0.2,
        },
        cpu_cores: 3.0,
        period_s: 0.2,
        launches: 300,
    }
}

fn trace(jobs: u64) -> Trace {
    Trace {
        name: "speed".to_owned(),
        workloads: (0..50).map(workload).collect(),
        jobs: (0..jobs)
            .map(|index| TraceJob {
                submit_ms: index * index * 2_500,
                user: (index % 5) as u32,
                gpus: if index % 20 == 7 { 2 } else { 1 },
                workload: (index * 11 % 50) as usize,
                solo_s: None,
                time_limit_s: None,
                gpu_mem: None,
            })
            .collect(),
    }
}

fn main() {
    let trace = trace(60);
    for (gpus, rounds) in [(3, 100), (8, 100)] {
        let config = MachineConfig::new(gpus, 40);
        let scheduler = || -> Box<dyn Scheduler> { Box::new(Core::new()) };
        let one = run(&trace, &config, scheduler(), 0);
        let report = Report::new(&one);
        println!("{report:#?} steps {}", one.steps);
        let begin = Instant::now();
        for seed in 0..rounds {
            std::hint::black_box(run(&trace, &config, scheduler(), seed));
        }
        let each = begin.elapsed().as_secs_f64() / rounds as f64;
        let rate = trace.jobs.len() as f64 / each;
        println!(
            "{gpus} GPUs: {:.1} ms a trace, {rate:.0} jobs a second",
            each * 1e3
        );
    }
}
