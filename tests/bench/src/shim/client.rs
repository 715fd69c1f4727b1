//! One run of the C client, with or without a preload library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use aegis_shim_tests::build;
use aegis_shim_tests::daemon::{FakeDaemon, TOKEN};
use aegis_shim_tests::sys::Ledger;
use anyhow::{Context, Result, bail};
use e2e::{Artifacts, GIB};
use tempfile::TempDir;

use super::existing;
use crate::stats::Stats;

/// How the client finds the driver's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// `cuGetProcAddress_v2`, as CUDA's runtime since 12.
    Gpa12,
    /// `cuGetProcAddress` of four arguments.
    Gpa11,
    /// `dlsym`, symbol by symbol.
    Dlsym,
    /// Linked to the driver.
    Direct,
}

impl Way {
    const fn argument(self) -> &'static str {
        match self {
            Self::Gpa12 => "gpa12",
            Self::Gpa11 => "gpa11",
            Self::Dlsym => "dlsym",
            Self::Direct => "direct",
        }
    }
}

/// What is loaded before the client's own libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preload {
    /// Nothing.
    Nothing,
    /// The shim, with a lease.
    Shim,
    /// The library of `--against`.
    Other,
}

/// The compiled clients, and what they run under.
pub(super) struct Clients {
    directory: TempDir,
    pub(super) artifacts: Artifacts,
    other: Option<PathBuf>,
}

/// What one run told.
pub(super) struct Run {
    /// CPU time of one call in each round, nanoseconds.
    pub(super) rounds: Vec<f64>,
    /// Calls made.
    pub(super) calls: u64,
    /// With the shim: its ledger.
    pub(super) ledger: Option<Arc<Ledger>>,
}

impl Clients {
    /// Compiles the client and the driver that answers at once.
    pub(super) fn build(other: Option<PathBuf>) -> Result<Self> {
        let artifacts = Artifacts::locate()?;
        existing(artifacts.shim.clone())?;
        let directory = TempDir::with_prefix("aegis-bench-")?;
        build::driver(directory.path());
        build::client(directory.path(), "bench", &["-O2"]);
        Ok(Self {
            directory,
            artifacts,
            other,
        })
    }

    /// The libraries to compare with bare runs.
    pub(super) fn preloads(&self) -> Vec<Preload> {
        let other = self.other.as_ref().map(|_| Preload::Other);
        std::iter::once(Preload::Shim).chain(other).collect()
    }

    /// The client's command, on the driver in a directory. The daemon is the shim's.
    pub(super) fn command(
        &self,
        way: Way,
        preload: Preload,
        driver: &Path,
        daemon: &FakeDaemon,
    ) -> Command {
        let program = match way {
            Way::Direct => "bench_direct",
            _ => "bench",
        };
        let mut command = Command::new(self.directory.path().join(program));
        self.environment(&mut command, preload, driver, daemon);
        command.arg(way.argument());
        command
    }

    /// Sets what a preload library and the driver are found by.
    pub(super) fn environment(
        &self,
        command: &mut Command,
        preload: Preload,
        driver: &Path,
        daemon: &FakeDaemon,
    ) {
        command
            .env("LD_LIBRARY_PATH", driver)
            .env_remove("LD_PRELOAD");
        match preload {
            Preload::Nothing => {}
            Preload::Shim => {
                command
                    .env("LD_PRELOAD", &self.artifacts.shim)
                    .env("AEGIS_SHIM_SOCKET", daemon.path())
                    .env("AEGIS_JOB_TOKEN", TOKEN);
            }
            Preload::Other => {
                command.env("LD_PRELOAD", self.other.as_deref().unwrap_or(Path::new("")));
            }
        }
    }

    /// Runs the client on the driver that answers at once. The shim's lease has a limit that is
    /// never reached, and a declared total if `declared`.
    pub(super) fn run(
        &self,
        way: Way,
        preload: Preload,
        declared: bool,
        arguments: &[String],
    ) -> Result<Run> {
        let daemon = FakeDaemon::start();
        daemon.line(0).limit.store(1 << 50, SeqCst);
        if declared {
            daemon.line(0).virtual_total.store(4 * GIB, SeqCst);
        }
        let output = self
            .command(way, preload, self.directory.path(), &daemon)
            .args(arguments)
            .env("FAKE_CUDA_QUIET", "1")
            .output()
            .context("the client")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let (rounds, calls) = parse(&text).unwrap_or_default();
        if !output.status.success() || rounds.is_empty() {
            bail!(
                "the client {way:?} {arguments:?} under {preload:?} ended with {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let ledger = (preload == Preload::Shim).then(|| daemon.ledger(0));
        Ok(Run {
            rounds,
            calls,
            ledger,
        })
    }
}

/// The figures of all rounds, then the last number: the calls.
pub(super) fn parse(text: &str) -> Option<(Vec<f64>, u64)> {
    let mut rounds = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("calls ") {
            Some(calls) => return Some((rounds, calls.parse().ok()?)),
            // Other libraries print to standard output too.
            None => rounds.extend(line.parse::<f64>()),
        }
    }
    None
}

/// The middle round.
pub(super) fn typical(run: &Run) -> Result<f64> {
    let stats = Stats::of(run.rounds.clone()).context("no round")?;
    Ok(stats.median)
}
