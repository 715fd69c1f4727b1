//! `workload-linked`: `workload` with the driver's functions bound by the dynamic linker.

mod ffi;

use std::process::ExitCode;

fn main() -> ExitCode {
    match ffi::tables() {
        Ok(tables) => workloads::cli::main(Some(tables)),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.exit_code())
        }
    }
}
