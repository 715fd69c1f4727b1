//! The `aegisd` program: the daemon, and under another name its keepers.

use std::fs::File;
use std::io::Write;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::process::ExitCode;

use aegis_daemon::config::Config;
use aegis_daemon::{jobs, serve, sys};
use clap::Parser;
use tracing_subscriber::EnvFilter;

/// Exit code for a wrong command line, as `aegis` uses it (EX_USAGE of sysexits.h).
const EXIT_USAGE: u8 = 64;
/// Exit code for a configuration that cannot be used (EX_CONFIG of sysexits.h).
const EXIT_CONFIG: u8 = 78;
/// Exit code for output that cannot be written (EX_IOERR).
const EXIT_OUTPUT: u8 = 74;

/// Decides which GPU can safely take one more training job, watches it, and repairs what goes wrong.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
struct Arguments {
    /// Configuration file [default: /etc/aegis/aegis.toml, rootless: ~/.config/aegis/aegis.toml; may be absent].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Serve only the user who starts it. Implied unless started by root.
    #[arg(long)]
    rootless: bool,
    /// Check the configuration and exit: 0 if it can be used, 78 with every error named if not.
    #[arg(long)]
    check_config: bool,
    /// Print a complete configuration file with every setting's default and meaning, and exit.
    #[arg(long)]
    print_config: bool,
    /// Write "READY" to this inherited descriptor once clients can connect.
    #[arg(long, value_name = "N")]
    ready_fd: Option<RawFd>,
}

const EXAMPLES: &str = "\
Examples:
  aegisd                                   as root: serve every user of the machine
  aegisd --rootless                        serve yourself only
  aegisd --print-config > aegis.toml       start a configuration file
  aegisd --config aegis.toml --check-config";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if arguments.nth(1).is_some_and(|verb| verb == "keeper") {
        let code = jobs::keeper::main(arguments);
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Nothing is left to tell if even that cannot be printed.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { EXIT_USAGE } else { 0 });
        }
    };
    let rootless = arguments.rootless || !rustix::process::geteuid().is_root();
    if arguments.print_config {
        return print_config(rootless);
    }
    let config = match Config::find(arguments.config.as_deref(), rootless) {
        Ok((config, _)) => config,
        Err(error) => {
            eprintln!("aegisd: {error}");
            return ExitCode::from(EXIT_CONFIG);
        }
    };
    if arguments.check_config {
        // Whoever does not read it has the exit code.
        let _ = writeln!(std::io::stdout(), "configuration is valid");
        return ExitCode::SUCCESS;
    }
    let filter = EnvFilter::try_from_env("AEGISD_LOG")
        .unwrap_or_else(|_| EnvFilter::new(config.daemon.log_level.as_str()));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let ready = match arguments.ready_fd.map(sys::inherit::descriptor).transpose() {
        Ok(ready) => ready.map(File::from),
        Err(error) => {
            eprintln!("aegisd: --ready-fd: {error}");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    match serve::run(&config, ready) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("aegisd: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_config(rootless: bool) -> ExitCode {
    match Config::default_for(rootless) {
        Ok(config) => {
            let text = config.documented();
            match std::io::stdout().write_all(text.as_bytes()) {
                // A reader that has gone away (`| head`) is no error.
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                    eprintln!("aegisd: cannot write the output: {error}");
                    ExitCode::from(EXIT_OUTPUT)
                }
                _ => ExitCode::SUCCESS,
            }
        }
        Err(error) => {
            eprintln!("aegisd: {error}");
            ExitCode::from(EXIT_CONFIG)
        }
    }
}
