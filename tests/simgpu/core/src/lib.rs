//! State of the simulated GPUs, shared by all processes of a simulated machine (test only).
//!
//! A *driver directory* holds everything: `simgpu.state` (mapped by each process), `config.json`,
//! `journal/`, and the two libraries. A process uses the simulated driver by
//! `LD_LIBRARY_PATH=<dir>`; the libraries find the state next to themselves (or in the file that
//! [`STATE_VARIABLE`] names). Nothing here ships, and nothing measured here is a GPU measurement:
//! label results "simulated driver".

mod clock;
pub mod config;
pub mod error;
pub mod fault;
pub mod install;
pub mod journal;
pub mod kernel;
pub mod layout;
pub mod machine;
mod memory;
mod process;
pub mod queue;
pub mod share;
mod sys;
pub mod usage;

pub use config::{GpuConfig, JournalMode, MachineConfig};
pub use error::{Error, Result};
pub use install::{built_libraries, install_libraries};
pub use machine::{Machine, STATE_VARIABLE};
pub use memory::{AllocationKind, OutOfMemory};
pub use process::{Process, process_alive, self_identity, start_time};

pub use clock::now_ns;
