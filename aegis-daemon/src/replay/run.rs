//! Machine and scheduler take turns.

use aegis_common::event::Stamped;
use aegis_common::id::Moment;
use aegis_common::learned::Learned;

use super::machine::{History, Machine, MachineConfig};
use super::outcome::Outcome;
use super::scheduler::Scheduler;
use super::trace::{Trace, TraceJob};

/// Replays a trace with a policy that knows nothing of any command before it has seen it.
///
/// The same trace, configuration, scheduler and seed give the same outcome. Jobs are numbered by
/// their place in the trace from 1; one that is listed before another is submitted before it. A
/// replay ends when all jobs are over, or when nothing has started, advanced or ended for a day:
/// the jobs the policy left waiting then have no end.
#[must_use]
pub fn run(
    trace: &Trace,
    config: &MachineConfig,
    scheduler: Box<dyn Scheduler>,
    seed: u64,
) -> Outcome {
    let nothing = |_: &TraceJob| Learned::default();
    run_with_history(trace, config, scheduler, seed, &nothing)
}

/// The same with what is known of each job's command when it is submitted.
#[must_use]
pub fn run_with_history(
    trace: &Trace,
    config: &MachineConfig,
    mut scheduler: Box<dyn Scheduler>,
    seed: u64,
    history: History<'_>,
) -> Outcome {
    let (shim, burst) = (scheduler.instrumented(), scheduler.samples_after_change());
    let mut machine = Machine::new(trace, config, seed, history, shim, burst);
    let (mut steps, mut journal) = (0, Vec::new());
    machine.begin();
    loop {
        loop {
            while let Some(event) = machine.outbox.pop_front() {
                steps += 1;
                let at = Moment(machine.now);
                let actions = scheduler.step(at, &event);
                for action in &actions {
                    machine.act(action);
                }
                if config.keep_journal {
                    journal.push((Stamped { at, event }, actions));
                }
            }
            if !machine.update_speeds() {
                break;
            }
        }
        if !machine.advance() {
            break;
        }
    }
    Outcome {
        steps,
        journal,
        ..machine.into_outcome()
    }
}
