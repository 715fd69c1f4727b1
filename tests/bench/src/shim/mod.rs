//! `aegis-bench shim`: what the preload library adds to a driver call, and to a program's start.
//!
//! Each figure is the difference between runs of the same C client with and without the library,
//! taken in turns, on a driver that answers at once. With the library a lease is active, and after
//! each run the ledger must have counted the calls that the client made.

mod calls;
mod client;
mod start;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::host::{self, Host};
use crate::report;
use client::Clients;

/// Options of `shim`.
#[derive(Args)]
pub(crate) struct Options {
    /// Print one JSON document on standard output
    #[arg(long)]
    json: bool,
    /// Measure another preload library in the same run; its settings are taken from the environment
    #[arg(long, value_name = "LIBRARY")]
    against: Option<PathBuf>,
}

/// Measures and prints.
///
/// # Errors
/// Something is not built, a client failed, or the ledger has not counted what the client did.
pub(crate) fn run(options: &Options) -> Result<()> {
    let against = options.against.as_deref().map(|path| {
        path.canonicalize()
            .with_context(|| format!("--against {}", path.display()))
    });
    let before = host::load_average()?;
    let clients = Clients::build(against.transpose()?)?;
    eprintln!("bench: calls, with and without the library in turns");
    let mut figures = calls::measure(&clients)?;
    eprintln!("bench: starting programs");
    figures.extend(start::measure(&clients)?);
    let host = Host::after(before, None)?;
    report::print(
        "a driver that answers at once; start-up: simulated driver",
        &figures,
        &host,
        options.json,
    )
}

/// A file that must be there.
fn existing(path: PathBuf) -> Result<PathBuf> {
    if !path.is_file() {
        bail!(
            "{} is not built: use `cargo xtask bench shim`",
            path.display()
        );
    }
    Ok(path)
}
