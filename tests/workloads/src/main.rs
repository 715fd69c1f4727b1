//! `workload`: a training job, or a small program that misbehaves in a known way.

use std::process::ExitCode;

fn main() -> ExitCode {
    workloads::cli::main(None)
}
