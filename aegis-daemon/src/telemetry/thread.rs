//! The telemetry thread: NVML sessions, one after the other.

use std::ffi::OsStr;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use aegis_common::abi::GpuUuid;
use aegis_common::id::GpuIndex;
use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use tokio::sync::mpsc::UnboundedSender;

use super::event::TelemetryEvent;
use super::schedule::Intervals;
use super::session::{self, Ended, Memory};

/// The name under which NVIDIA's driver installs NVML.
const LIBRARY: &str = "libnvidia-ml.so.1";
/// First pause after NVML failed; doubled up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Longest pause after NVML failed.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How NVML is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// The NVML library; `None` lets the dynamic linker find `libnvidia-ml.so.1`.
    pub nvml_library: Option<PathBuf>,
    /// Between readings of the memory in use; at least 100 ms.
    pub memory_interval: Duration,
    /// Between readings of activity (GPM or utilisation); at least 500 ms.
    pub sample_interval: Duration,
    /// Between readings of process lists; at least 1 s.
    pub process_interval: Duration,
    /// Indices that GPUs keep, by UUID: those in use by jobs of an earlier daemon. The driver may
    /// number its GPUs anew when it is loaded or has lost one.
    pub known: Vec<(GpuUuid, GpuIndex)>,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            nvml_library: None,
            memory_interval: Duration::from_millis(250),
            sample_interval: Duration::from_secs(1),
            process_interval: Duration::from_secs(1),
            known: Vec::new(),
        }
    }
}

impl TelemetryConfig {
    /// The intervals, none below what the driver can bear (contract C8).
    pub(super) fn intervals(&self) -> Intervals {
        Intervals {
            memory: self.memory_interval.max(Duration::from_millis(100)),
            activity: self.sample_interval.max(Duration::from_millis(500)),
            processes: self.process_interval.max(Duration::from_secs(1)),
        }
    }
}

pub(super) enum Command {
    Refresh,
    Active(bool),
    Stop,
}

/// The running telemetry thread. Dropping it stops the thread after the NVML call it is in.
#[derive(Debug)]
pub struct Telemetry {
    commands: Sender<Command>,
}

impl Telemetry {
    /// Starts the thread, which at once looks for GPUs and reads them (as if a job were running,
    /// until [`Telemetry::set_active`] says otherwise).
    ///
    /// # Errors
    ///
    /// The thread cannot be created. NVML's own troubles come as
    /// [`TelemetryEvent::Unavailable`].
    pub fn start(
        config: TelemetryConfig,
        events: UnboundedSender<TelemetryEvent>,
    ) -> io::Result<Self> {
        let (commands, receiver) = channel();
        std::thread::Builder::new()
            .name("telemetry".to_owned())
            .spawn(move || run(&config, &receiver, &events))?;
        Ok(Self { commands })
    }

    /// Asks for memory and process lists at once, as far as the driver can bear it (three times in
    /// a row, then 100 and 250 ms apart), and for a sample of every GPU even if nothing changed:
    /// when a job or process ended, an allocation waits for room, or samples are old.
    pub fn request_refresh(&self) {
        self.command(Command::Refresh);
    }

    /// Whether any job runs or waits. Otherwise each value is read every ten seconds.
    pub fn set_active(&self, active: bool) {
        self.command(Command::Active(active));
    }

    fn command(&self, command: Command) {
        // The thread ends only after `Stop`.
        let _ = self.commands.send(command);
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.command(Command::Stop);
    }
}

/// Loads and initialises NVML.
pub(super) fn open(library: Option<&Path>) -> Result<Nvml, NvmlError> {
    let library = library.map_or(OsStr::new(LIBRARY), Path::as_os_str);
    Nvml::builder().lib_path(library).init()
}

fn run(
    config: &TelemetryConfig,
    commands: &Receiver<Command>,
    events: &UnboundedSender<TelemetryEvent>,
) {
    let mut memory = Memory {
        active: true,
        indices: config.known.iter().copied().collect(),
        told: None,
    };
    let mut pause = PAUSE_MIN;
    loop {
        // A panic in the bindings must not silence telemetry for good. What the session changes is
        // valid between any two statements.
        let ended = catch_unwind(AssertUnwindSafe(|| {
            session::run(config, &mut memory, commands, events)
        }));
        let error = match ended {
            Ok(Ended::Stopped) => return,
            Ok(Ended::Recount) => {
                pause = PAUSE_MIN;
                continue;
            }
            Ok(Ended::Failed(error)) => error,
            Err(_) => "the NVML bindings panicked".to_owned(),
        };
        if memory.told.take().is_some() {
            // It worked until now.
            pause = PAUSE_MIN;
        }
        tracing::warn!(error, "NVML is not available");
        if events.send(TelemetryEvent::Unavailable { error }).is_err() {
            return;
        }
        if wait(pause, &mut memory, commands).is_err() {
            return;
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Nobody wants telemetry any more.
struct Stopped;

fn wait(pause: Duration, memory: &mut Memory, commands: &Receiver<Command>) -> Result<(), Stopped> {
    let end = Instant::now() + pause;
    loop {
        match commands.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return Err(Stopped),
            Ok(Command::Active(active)) => memory.active = active,
            Ok(Command::Refresh) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[tokio::test]
    async fn a_missing_library_is_reported_by_name() {
        let config = TelemetryConfig {
            nvml_library: Some("/nowhere/libnvidia-ml.so.1".into()),
            ..TelemetryConfig::default()
        };
        let (sender, mut events) = unbounded_channel();
        let telemetry = Telemetry::start(config, sender).unwrap();
        let Some(TelemetryEvent::Unavailable { error }) = events.recv().await else {
            panic!("available?");
        };
        assert!(error.contains("/nowhere/libnvidia-ml.so.1"), "{error}");
        drop(telemetry);
        // The thread ends and with it the channel.
        while events.recv().await.is_some() {}
    }
}
