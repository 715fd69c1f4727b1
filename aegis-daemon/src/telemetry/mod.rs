//! What NVML tells about GPUs and their processes (contract C8).
//!
//! ```text
//!   NVML --(one thread; its calls block)--> TelemetryEvent --> owner --attribute--> GpuSample
//! ```
//!
//! Every NVML call takes a lock inside the driver that launching threads need too, so calls are few:
//! memory at most 10 times a second, GPM and utilisation at most twice, process lists once (measured
//! by others at 12 µs, 2.5 µs and 4.5 ms a call). A value that was not answered, is NaN or stale is
//! `None` and never reads as idle. DCGM is not used: GPUs without GPM have NVML utilisation.
#![forbid(unsafe_code)]

mod attribute;
mod bpf;
mod checks;
mod device;
mod event;
mod found;
mod processes;
mod schedule;
mod session;
mod thread;
mod topology;

pub use attribute::{ProcessInfo, attribute, process_info};
pub use bpf::{Exited, Lifecycle, LifecycleEvent, Sender, Unavailable};
pub use checks::checks;
pub use event::{GpuFound, RawSample, TelemetryEvent};
pub use thread::{Telemetry, TelemetryConfig};
