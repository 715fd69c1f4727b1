//! `cargo xtask hooks`: compares the shim's hook table with `cuda.h`.
//!
//! The table must know every function that allocates, gives back, launches or copies by its name:
//! hooked, or listed in `aegis-shim/passed.txt` with the reason why not. Beside `cuda.h` lies
//! `cudaTypedefs.h`, which tells the version of each signature that `cuGetProcAddress` knows: the
//! table's must be among them, and none of a hooked name may be missing.

mod compare;
mod header;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::command::run as run_command;
use crate::versions::CUDA_HEADERS;
use crate::workspace::{shim, target, venv};
use header::Header;
use table::Table;

/// Options of `hooks`.
#[derive(Args)]
pub(crate) struct Options {
    /// Compare with this cuda.h; without it NVIDIA's runtime wheels are fetched from PyPI into
    /// target/
    #[arg(long, value_name = "PATH")]
    header: Vec<PathBuf>,
}

/// `cargo xtask hooks`.
///
/// # Errors
/// A header cannot be had or read, or the table does not fit one.
pub(crate) fn run(options: &Options) -> Result<()> {
    let paths = if options.header.is_empty() {
        fetched()?
    } else {
        options.header.clone()
    };
    let table = Table::read(&shim())?;
    let mut problems = table.contradictions();
    let mut headers = Vec::new();
    for path in paths {
        let header = Header::read(&path)?;
        println!(
            "hooks: {} ({}): {} functions, {} signatures",
            path.display(),
            header.version_text(),
            header.symbols.len(),
            header.signatures.len()
        );
        problems.extend(compare::unknown(&table, &header));
        problems.extend(compare::signatures(&table, &header));
        headers.push(header);
    }
    // One header alone need not have what another version brought or dropped.
    if options.header.is_empty() {
        problems.extend(compare::stale(&table, &headers));
    }
    problems.sort();
    problems.dedup();
    for problem in &problems {
        println!("hooks: {problem}");
    }
    println!(
        "hooks: {} hooked, {} passed, {} problems",
        table.rows.len(),
        table.passed.len(),
        problems.len()
    );
    if !problems.is_empty() {
        bail!(
            "the hook table does not fit; add rows to aegis-shim/src/hooks/table.rs or names to aegis-shim/passed.txt"
        );
    }
    Ok(())
}

/// The headers of NVIDIA's runtime wheels, never committed.
fn fetched() -> Result<Vec<PathBuf>> {
    let python = venv().join("bin/python");
    if !python.exists() {
        bail!("there is no {}: cargo xtask setup", python.display());
    }
    CUDA_HEADERS
        .iter()
        .map(|(package, version)| {
            let directory = target().join("cuda-headers").join(version);
            if let Ok(found) = find(&directory) {
                return Ok(found);
            }
            run_command(
                Command::new(&python)
                    .args(["-m", "pip", "install", "--quiet", "--no-deps"])
                    .args(["--disable-pip-version-check", "--target"])
                    .arg(&directory)
                    .arg(format!("{package}=={version}")),
            )
            .context("is PyPI reachable? Without it: cargo xtask hooks --header PATH/cuda.h")?;
            find(&directory)
        })
        .collect()
}

/// `nvidia/*/include/cuda.h` below a directory.
fn find(directory: &Path) -> Result<PathBuf> {
    let parts = directory.join("nvidia");
    for part in std::fs::read_dir(&parts).with_context(|| parts.display().to_string())? {
        let header = part?.path().join("include/cuda.h");
        if header.exists() {
            return Ok(header);
        }
    }
    bail!("there is no cuda.h below {}", parts.display())
}
