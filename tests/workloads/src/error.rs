//! Every way a workload ends badly, and the exit code that tells a test which one it was.

use std::io;

use crate::oom::OomReport;

/// A workload's failure.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The caching allocator gave up. The text is what a framework's user would see.
    #[error("{0}")]
    OutOfMemory(Box<OomReport>),
    /// A call other than an allocation (context creation, module loading) found no memory. Frameworks
    /// do not recover from it.
    #[error("torch.AcceleratorError: CUDA error: out of memory ({call})")]
    NoMemory {
        /// The driver function.
        call: &'static str,
    },
    /// A driver call failed with something other than an out-of-memory a framework recovers from.
    #[error("CUDA error: {call} returned {code} ({name})")]
    Driver {
        /// The driver function.
        call: &'static str,
        /// The `CUresult`.
        code: u32,
        /// The `CUresult`'s name, or `unknown`.
        name: &'static str,
    },
    /// The driver library or one of its functions is missing.
    #[error("no usable CUDA driver: {0} (is libcuda.so.1 on LD_LIBRARY_PATH?)")]
    NoDriver(String),
    /// Data read back from the GPU differs from what was copied there.
    #[error(
        "GPU {gpu}: byte {offset} of the batch of step {step} is {found:#04x}, not {expected:#04x}"
    )]
    Corrupt {
        /// The GPU's ordinal in this process.
        gpu: u32,
        /// The step whose batch was checked.
        step: u64,
        /// Offset of the first wrong byte.
        offset: usize,
        /// The byte that was copied to the GPU.
        expected: u8,
        /// The byte that came back.
        found: u8,
    },
    /// Parameters that cannot be run; `field` is the option's name.
    #[error("--{field}: {problem}")]
    BadParameter {
        /// The option, without dashes.
        field: &'static str,
        /// What is wrong and how to put it right.
        problem: String,
    },
    /// A file or pipe failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A rank of a multi-process run failed; its own message is on its stderr.
    #[error("rank {rank} exited with {code}")]
    Rank {
        /// The rank that failed first.
        rank: u32,
        /// Its exit code (128 + signal if it was killed).
        code: u8,
    },
}

impl WorkloadError {
    /// Names an I/O failure.
    pub fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            what: what.into(),
            source,
        }
    }

    /// Names a bad parameter.
    pub fn bad(field: &'static str, problem: impl Into<String>) -> Self {
        Self::BadParameter {
            field,
            problem: problem.into(),
        }
    }

    /// Whether the GPU had no room for what was asked.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::OutOfMemory(_) | Self::NoMemory { .. })
    }

    /// The process's exit code: 1 as Python's for an uncaught exception, else as in `sysexits.h`.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::OutOfMemory(_) | Self::NoMemory { .. } => 1,
            Self::BadParameter { .. } => 2,
            Self::Driver { .. } | Self::NoDriver(_) => 69,
            Self::Corrupt { .. } => 70,
            Self::Io { .. } => 74,
            Self::Rank { code, .. } => *code,
        }
    }
}
