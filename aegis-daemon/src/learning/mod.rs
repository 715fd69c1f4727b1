//! What earlier runs of a command say about the next one. Pure: no files, no clock.
//!
//! ```text
//!   argv, directory --wrapper, shell--> program --argument, mask--> Command (the key)
//!   runs of that Command --summary--> Learned
//!   none? runs of similar Commands --similar, summary--> Learned, exact = false
//! ```
//!
//! The store keeps the runs per user; nothing here ever sees those of two users together.
#![forbid(unsafe_code)]

mod argument;
mod command;
mod mask;
mod path;
mod shell;
mod similar;
mod summary;
mod wrapper;

pub use argument::Arg;
pub use command::{Command, FORM};
pub use similar::{Near, choose, distance};
pub use summary::{RUNS_KEPT, similar, summary};
