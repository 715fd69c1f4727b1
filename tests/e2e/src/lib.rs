//! The harness of the end-to-end tests and of the demo: the real daemon, shim and command line on a
//! simulated machine, in a temporary directory, without privileges.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! let world = e2e::World::start(e2e::Setup::gpus(2, 16 << 30))?;
//! let job = world.submit(&["--gpu-mem", "4GiB"], &world.workload(&["vision", "--steps", "20"]))?;
//! assert_eq!(world.wait(job)?, 0);
//! # Ok(())
//! # }
//! ```
//!
//! Nothing is built here: `cargo xtask test` and `cargo xtask demo` do that. A test that cannot run
//! on this machine says why with [`skip!`], and `cargo xtask test` counts it.

mod artifacts;
mod cli;
mod daemon;
mod disk;
mod events;
mod ledger;
mod processes;
mod progress;
mod setup;
mod world;

pub use artifacts::Artifacts;
pub use cli::Answer;
pub use daemon::Daemon;
pub use disk::SmallDisk;
pub use events::{DEADLINE, Lines, until, wait_line};
pub use ledger::HostileShim;
pub use processes::{Guard, alive, descendants, kill, start_ticks};
pub use progress::{Line as ProgressLine, Progress, read_progress};
pub use setup::{GIB, MIB, Setup};
pub use world::World;

/// Ends the test here as skipped, with a reason that `cargo xtask test` shows and counts.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        println!("SKIPPED: {}", format_args!($($reason)*));
        return Ok(());
    }};
}
