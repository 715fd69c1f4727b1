//! What a replay promises whatever the policy: the same again, nothing from names, nothing from
//! the future.

use crate::replay::baseline::{self, Profiles};
use crate::replay::generate::{Shape, generate};
use crate::replay::trace::Trace;
use crate::replay::{MachineConfig, Outcome, run};
use crate::scheduler::Core;
use aegis_common::policy::{Mode, Policy};

const SEED: u64 = 5;

fn trace() -> Trace {
    generate(Shape::Saturn, 30, 3, 1.0, SEED)
}

fn machine(mode: Mode) -> MachineConfig {
    MachineConfig {
        keep_journal: true,
        policy: Policy {
            mode,
            ..Policy::default()
        },
        ..MachineConfig::new(3, 40)
    }
}

fn core_on(trace: &Trace, mode: Mode) -> Outcome {
    run(trace, &machine(mode), Box::new(Core::new()), SEED)
}

#[test]
fn the_same_replay_gives_the_same_journal() {
    let trace = trace();
    for mode in [Mode::Gate, Mode::Gentle] {
        assert_eq!(core_on(&trace, mode), core_on(&trace, mode));
    }
}

#[test]
fn names_change_nothing() {
    let trace = trace();
    let mut renamed = trace.clone();
    for (place, workload) in renamed.workloads.iter_mut().enumerate() {
        workload.name = format!("program {}", place * 7 % 54);
    }
    for mode in [Mode::Gate, Mode::Gentle] {
        assert_eq!(core_on(&trace, mode), core_on(&renamed, mode));
    }
    let config = machine(Mode::Gate);
    let released = |trace: &Trace| {
        let policy = baseline::named("aegis-released", &Profiles::new()).expect("a baseline");
        run(trace, &config, policy, SEED)
    };
    assert_eq!(released(&trace), released(&renamed));
}

/// Work that is left after a moment is hidden truth: twice as much of it changes what is decided
/// later, and nothing before.
#[test]
fn the_future_changes_no_decision() {
    const UNTIL_MS: u64 = 900_000;
    let trace = trace();
    let mut longer = trace.clone();
    for job in &mut longer.jobs {
        let workload = &trace.workloads[job.workload];
        // An evaluation comes after a share of the work: its moment would move as well.
        let even = workload.memory.after_first_steps >= 1.0;
        if even && job.submit_ms as f64 + workload.solo_s * 1e3 > UNTIL_MS as f64 {
            job.solo_s = Some(workload.solo_s * 2.0);
        }
    }
    for mode in [Mode::Gate, Mode::Gentle] {
        let (short, long) = (core_on(&trace, mode), core_on(&longer, mode));
        let before = |outcome: &Outcome| {
            let until = outcome
                .journal
                .partition_point(|(stamped, _)| stamped.at.0 < UNTIL_MS);
            outcome.journal[..until].to_vec()
        };
        assert!(before(&short).len() > 1_000);
        assert_eq!(before(&short), before(&long));
        assert_ne!(short.journal, long.journal);
    }
}
