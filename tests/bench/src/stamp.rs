//! The job that says when it runs: `aegis-bench-stamp STARTED [GATE ENDED]`.
//!
//! Writes the monotonic clock to STARTED first thing. With a GATE (a named pipe) it then waits
//! until somebody has opened and closed the pipe for writing, and writes the clock to ENDED last
//! thing.

use std::ffi::OsString;
use std::io::Read;
use std::process::ExitCode;

use rustix::time::{ClockId, clock_gettime};

fn main() -> ExitCode {
    let started = now_ns();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match run(started, &arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("aegis-bench-stamp: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(started: i128, arguments: &[OsString]) -> std::io::Result<()> {
    let Some(file) = arguments.first() else {
        return Err(std::io::Error::other("give a file to write to"));
    };
    write(file, started)?;
    if let [_, gate, ended] = arguments {
        std::fs::File::open(gate)?.read_to_end(&mut Vec::new())?;
        write(ended, now_ns())?;
    }
    Ok(())
}

/// Under another name first, so that a reader never sees half a number.
fn write(file: &OsString, ns: i128) -> std::io::Result<()> {
    let mut draft = file.clone();
    draft.push(".draft");
    std::fs::write(&draft, ns.to_string())?;
    std::fs::rename(&draft, file)
}

fn now_ns() -> i128 {
    let now = clock_gettime(ClockId::Monotonic);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}
