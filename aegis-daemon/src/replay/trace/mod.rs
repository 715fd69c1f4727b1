//! Jobs and when they were submitted.
//!
//! ```text
//!   published file --import--> jobs --assemble (window, programs)--> Trace
//!   this server's finished jobs ----past (peaks, profiles)---------> Trace
//! ```

mod assemble;
pub mod import;
mod past;
mod programs;

pub use assemble::{Assembly, Assumed, assemble};
pub use past::{PastAssumed, from_past};

use super::workload::Workload;

/// A trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Where it comes from.
    pub name: String,
    /// The programs its jobs run.
    pub workloads: Vec<Workload>,
    /// By submission.
    pub jobs: Vec<TraceJob>,
}

/// One job of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceJob {
    /// Milliseconds after the beginning of the trace.
    pub submit_ms: u64,
    /// The submitting user, from 0.
    pub user: u32,
    /// GPUs it asks for.
    pub gpus: u32,
    /// Which of [`Trace::workloads`] it runs.
    pub workload: usize,
    /// Its own duration alone in seconds, where the trace tells; else the workload's.
    pub solo_s: Option<f64>,
    /// The time limit it declares.
    pub time_limit_s: Option<u64>,
    /// The memory it declares on each GPU, bytes.
    pub gpu_mem: Option<u64>,
}

impl Trace {
    /// How long a job runs alone from its first launch, seconds.
    #[must_use]
    pub fn solo_s(&self, job: &TraceJob) -> f64 {
        let workload = self.workloads.get(job.workload);
        job.solo_s
            .or(workload.map(|workload| workload.solo_s))
            .unwrap_or(0.0)
    }
}
