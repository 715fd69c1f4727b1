//! The loop: one message at a time.

use std::time::Duration;

use aegis_common::event::Event;
use aegis_common::id::ProcessKey;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tracing::info;

use super::{ClientCall, Owner};
use crate::jobs::KeeperEvent;
use crate::lease::ShimEvent;
use crate::telemetry::{LifecycleEvent, TelemetryEvent};

/// How often ledgers are read while instrumented processes live.
const LEDGER_INTERVAL: Duration = Duration::from_millis(500);
/// How often an unwritable journal is tried again.
const JOURNAL_RETRY: Duration = Duration::from_secs(1);

/// Everything that reaches the owner.
#[derive(Debug)]
pub struct Inputs {
    /// Requests of clients.
    pub clients: UnboundedReceiver<ClientCall>,
    /// Messages of shims.
    pub shims: UnboundedReceiver<ShimEvent>,
    /// Messages of keepers.
    pub keepers: UnboundedReceiver<KeeperEvent>,
    /// Samples.
    pub telemetry: UnboundedReceiver<TelemetryEvent>,
    /// What the kernel tells about processes of jobs.
    pub lifecycle: UnboundedReceiver<LifecycleEvent>,
    /// Instrumented processes that ended.
    pub processes: UnboundedReceiver<ProcessKey>,
}

impl Owner {
    /// Runs until asked to stop. Jobs go on without the daemon and are adopted by the next one.
    pub async fn run(mut self, mut inputs: Inputs) {
        let mut ledgers = interval(LEDGER_INTERVAL);
        ledgers.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut retry = interval(JOURNAL_RETRY);
        retry.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stop = self.stop.clone();
        loop {
            let wake = self.wake_in();
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                Some(event) = inputs.keepers.recv() => self.on_keeper(event),
                Some(key) = inputs.processes.recv() => self.on_process_gone(key),
                Some(event) = inputs.lifecycle.recv() => self.on_lifecycle(event),
                Some(event) = inputs.shims.recv() => self.on_shim(event),
                Some(call) = inputs.clients.recv() => self.on_client(call),
                Some(event) = inputs.telemetry.recv() => self.on_telemetry(event),
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {
                    self.wake_at = None;
                    self.feed(Event::Woken);
                }
                _ = ledgers.tick(), if self.has_processes() => {
                    self.read_ledgers();
                    self.measure_paces();
                }
                _ = retry.tick(), if self.journal_error.is_some() => self.commit(),
            }
            self.snapshot_if_due();
            self.set_telemetry_pace();
        }
        info!("stopping; jobs go on and the next daemon adopts them");
        self.snapshot();
    }

    fn has_processes(&self) -> bool {
        !self.processes.is_empty() || !self.uninstrumented.is_empty()
    }

    fn wake_in(&mut self) -> Option<Instant> {
        let wake_at = self.wake_at?;
        let millis = wake_at.millis_since(self.clock.now());
        Some(Instant::now() + Duration::from_millis(millis))
    }

    /// NVML is read often only while there is a job.
    fn set_telemetry_pace(&mut self) {
        let active = self.core.has_live();
        if active != self.telemetry_active
            && let Some(telemetry) = &self.telemetry
        {
            telemetry.set_active(active);
            self.telemetry_active = active;
        }
    }

    /// Samples of every GPU are wanted as soon as the driver can bear it.
    pub(super) fn refresh_samples(&self) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.request_refresh();
        }
    }

    pub(super) fn on_keeper(&mut self, event: KeeperEvent) {
        match event {
            KeeperEvent::Started { job, attempt, gpus } => {
                self.feed(Event::Started { job, attempt, gpus });
                self.notify_waiters();
            }
            KeeperEvent::StartFailed {
                job,
                attempt,
                error,
            } => {
                self.feed(Event::StartFailed {
                    job,
                    attempt,
                    error,
                });
            }
            KeeperEvent::Ended { job, attempt, exit } => {
                // The keeper ended the whole tree first, so every process of the job is gone even
                // if its pidfd has not been heard yet.
                for key in self.processes.of_job(job) {
                    self.on_process_gone(key);
                }
                self.feed(Event::Ended { job, attempt, exit });
                // Whoever waits for its memory waits for a sample that shows it free.
                self.refresh_samples();
            }
        }
    }
}
