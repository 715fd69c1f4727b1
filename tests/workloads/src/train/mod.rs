//! Training runs: start-up, epochs of steps, an evaluation after each epoch.

mod ranks;
mod replica;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use crate::cuda::{Driver, DriverSource, Gpu};
use crate::device::Device;
use crate::error::WorkloadError;
use crate::plan::Plan;
use crate::preset::Kind;
use crate::progress::{Event, Progress};
use crate::say::say;
use crate::train_args::{OnTerm, Ranks, TrainArgs};
use crate::units::human;

use ranks::{Alone, Peers, Rendezvous};
pub use replica::Replica;

/// How a run that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All steps are done.
    Done,
    /// Stopped on request, after saving its state.
    Checkpointed,
}

/// Runs a training kind from its options. Returns the exit code.
///
/// # Errors
/// The run's failure; an out-of-memory error has been recorded in the progress file.
pub fn run(kind: Kind, args: &TrainArgs, source: &DriverSource) -> Result<u8, WorkloadError> {
    let plan = Plan::resolve(kind, args)?;
    if args.print_plan {
        let text = serde_json::to_string(&plan).map_err(|e| WorkloadError::io("plan", e.into()))?;
        say(&text)?;
        return Ok(0);
    }
    let stop = Arc::new(AtomicBool::new(false));
    if args.on_term == OnTerm::Checkpoint {
        signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&stop))
            .map_err(|e| WorkloadError::io("SIGTERM handler", e))?;
    }
    if args.ranks == Ranks::Processes && plan.gpus > 1 && args.rank.is_none() {
        ranks::launch(plan.gpus, &stop)?;
        return Ok(if stop.load(Ordering::Relaxed) {
            0
        } else {
            args.exit_code
        });
    }
    let rank = args.rank.unwrap_or(0);
    let attempt = std::env::var("AEGIS_ATTEMPT").unwrap_or_default();
    let mut progress = Progress::open(
        args.progress.as_deref(),
        plan.kind,
        attempt,
        rank,
        plan.steps_total,
    )?;
    progress.record(Event::Start, 0)?;
    if rank == 0 {
        say(&format!(
            "{}: {} steps, {} GPU(s), peak {} per GPU",
            plan.kind,
            plan.steps_total,
            plan.gpus,
            human(plan.peak_bytes)
        ))?;
    }
    sleep(Duration::from_secs_f64(plan.startup_s));

    let gpus = open_gpus(&plan, args.rank, source);
    if gpus.as_ref().is_err_and(WorkloadError::is_out_of_memory) {
        progress.record(Event::Oom, 0)?;
    }
    let gpus = gpus?;
    let mut replicas: Vec<_> = gpus
        .into_iter()
        .map(|gpu| Replica::new(gpu, &plan))
        .collect();
    let mut peers: Box<dyn Rendezvous> = match args.rank {
        Some(_) => Box::new(Peers::from_stdin()?),
        None => Box::new(Alone),
    };
    let mut run = Run {
        plan: &plan,
        progress: &mut progress,
        peers: &mut *peers,
        stop: &stop,
        talks: rank == 0,
        step: 0,
        stopping: false,
    };
    match run.all(&mut replicas)? {
        Outcome::Done => Ok(args.exit_code),
        Outcome::Checkpointed => Ok(0),
    }
}

/// The GPUs of this process: the rank's, or all. Their contexts may find no memory.
fn open_gpus(
    plan: &Plan,
    rank: Option<u32>,
    source: &DriverSource,
) -> Result<Vec<Gpu>, WorkloadError> {
    let driver = Driver::load(source)?;
    match rank {
        Some(rank) => Ok(vec![Gpu::open(&driver, rank)?]),
        None => (0..plan.gpus)
            .map(|ordinal| Gpu::open(&driver, ordinal))
            .collect(),
    }
}

/// A run in progress.
struct Run<'a> {
    plan: &'a Plan,
    progress: &'a mut Progress,
    peers: &'a mut dyn Rendezvous,
    stop: &'a AtomicBool,
    /// Whether this rank writes the human progress and the step lines.
    talks: bool,
    /// Training steps done.
    step: u64,
    /// Some rank was asked to stop.
    stopping: bool,
}

impl Run<'_> {
    /// Runs to the end, recording an out-of-memory error as an event before it is passed on.
    fn all<D: Device>(&mut self, replicas: &mut [Replica<D>]) -> Result<Outcome, WorkloadError> {
        let result = self.epochs(replicas);
        if result.as_ref().is_err_and(WorkloadError::is_out_of_memory) {
            self.progress.record(Event::Oom, self.step)?;
        }
        result
    }

    fn epochs<D: Device>(&mut self, replicas: &mut [Replica<D>]) -> Result<Outcome, WorkloadError> {
        for replica in &mut *replicas {
            replica.load()?;
        }
        for epoch in 1..=self.plan.epochs {
            for step in 1..=self.plan.steps {
                self.train_step(replicas)?;
                self.tell_step(epoch, step)?;
                if self.stopping {
                    self.tell(&format!("checkpoint saved at step {}", self.step))?;
                    self.record(Event::Checkpoint)?;
                    return Ok(Outcome::Checkpointed);
                }
            }
            self.record(Event::Epoch)?;
            if self.plan.eval_steps > 0 {
                for _ in 0..self.plan.eval_steps {
                    self.eval_step(replicas)?;
                }
                self.record(Event::Eval)?;
                self.tell(&format!(
                    "epoch {epoch} evaluation accuracy {:.2}",
                    self.accuracy()
                ))?;
            }
        }
        self.record(Event::Done)?;
        self.tell("done")?;
        Ok(Outcome::Done)
    }

    fn train_step<D: Device>(&mut self, replicas: &mut [Replica<D>]) -> Result<(), WorkloadError> {
        sleep(Duration::from_millis(self.plan.loader_ms));
        let number = self.step + 1;
        for replica in &mut *replicas {
            replica.forward_backward(number)?;
            if self.step == 0 && self.talks && replica.is_first() {
                self.progress.record(Event::FirstLaunch, 0)?;
            }
        }
        for replica in &mut *replicas {
            replica.wait(number)?;
        }
        // Gradients are exchanged here: no rank updates its weights before all have them.
        self.meet()?;
        for replica in &mut *replicas {
            replica.update(number)?;
        }
        for replica in replicas {
            replica.synchronize()?;
        }
        self.step = number;
        Ok(())
    }

    fn eval_step<D: Device>(&mut self, replicas: &mut [Replica<D>]) -> Result<(), WorkloadError> {
        for replica in &mut *replicas {
            replica.evaluate()?;
        }
        for replica in replicas {
            replica.synchronize()?;
        }
        self.meet()
    }

    fn meet(&mut self) -> Result<(), WorkloadError> {
        let stop = self.stop.load(Ordering::Relaxed);
        self.stopping |= self.peers.meet(stop)?;
        Ok(())
    }

    fn tell_step(&mut self, epoch: u32, step: u32) -> Result<(), WorkloadError> {
        if self.step.is_multiple_of(self.plan.progress_every) {
            self.record(Event::Step)?;
        }
        let often = (self.plan.steps / 6).max(1);
        if step.is_multiple_of(often) || step == self.plan.steps {
            let loss = self.loss();
            self.tell(&format!(
                "epoch {epoch} step {step}/{} loss {loss:.2}",
                self.plan.steps
            ))?;
        }
        Ok(())
    }

    fn record(&mut self, event: Event) -> Result<(), WorkloadError> {
        if self.talks {
            self.progress.record(event, self.step)?;
        }
        Ok(())
    }

    fn tell(&self, line: &str) -> Result<(), WorkloadError> {
        if self.talks { say(line) } else { Ok(()) }
    }

    /// Nothing is learned; a log should still look like one.
    #[expect(clippy::cast_precision_loss, reason = "cosmetic")]
    fn loss(&self) -> f64 {
        0.3 + 2.0 / (1.0 + self.step as f64 / 20.0)
    }

    fn accuracy(&self) -> f64 {
        1.0 - self.loss() / 2.5
    }
}
