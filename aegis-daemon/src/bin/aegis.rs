//! The `aegis` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    aegis_daemon::cli::run(std::env::args_os())
}
