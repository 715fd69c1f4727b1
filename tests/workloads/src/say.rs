//! Output that reaches a log at once and does not panic when the reader has gone.

use std::io::{self, Write};

use crate::error::WorkloadError;

/// Prints a line to stdout and flushes it.
///
/// # Errors
/// [`WorkloadError::Io`], for instance for a closed pipe.
pub fn say(line: &str) -> Result<(), WorkloadError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|e| WorkloadError::io("stdout", e))
}
