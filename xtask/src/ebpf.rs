//! `cargo xtask ebpf`: the BPF object the daemon carries inside itself.
//!
//! The daemon's build script takes it from `aegis-ebpf/object/`; where there is none the daemon is
//! built without and follows processes by `/proc` and pidfds alone. It is never committed.

mod compiler;
mod linker;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;

use crate::command::{capture, line};
use crate::setup;
use crate::workspace::{ebpf, ebpf_target, root};
use compiler::{Compiler, TARGET};

/// Options of `ebpf`.
#[derive(Args)]
pub(crate) struct Options {
    /// Use what is there; install nothing
    #[arg(long)]
    offline: bool,
}

/// What builds the programs.
#[derive(Debug)]
pub(crate) struct Tools {
    compiler: Compiler,
    linker: PathBuf,
}

impl Tools {
    /// Looks for them.
    ///
    /// # Errors
    /// One is missing; the message says what was looked for.
    pub(crate) fn find() -> Result<Self> {
        Ok(Self {
            compiler: Compiler::find()?,
            linker: linker::find()?,
        })
    }

    /// One line for people.
    pub(crate) fn describe(&self) -> String {
        format!("{}, {}", self.compiler, self.linker.display())
    }
}

/// Gets what [`Tools::find`] misses.
///
/// # Errors
/// It cannot be installed here.
pub(crate) fn install_tools() -> Result<()> {
    if Compiler::find().is_err() {
        compiler::install()?;
    }
    let compiler = Compiler::find()?;
    if linker::find().is_err() {
        linker::install(compiler.llvm_major()?)?;
    }
    Ok(())
}

/// `cargo xtask ebpf`.
///
/// # Errors
/// No compiler, or the programs do not build.
pub(crate) fn run(options: &Options) -> Result<()> {
    setup::prepare(setup::Verb::Ebpf, !options.offline)?;
    let tools = Tools::find().with_context(|| format!("to get it: {}", setup::bpf::BY_HAND))?;
    println!("ebpf: compiler: {}", tools.describe());
    let object = build(&tools)?;
    let bytes = fs::metadata(&object)
        .with_context(|| format!("cannot read {}", object.display()))?
        .len();
    println!("ebpf: {} ({} KiB)", object.display(), bytes / 1024);
    Ok(())
}

/// Builds the object if this machine can; else makes sure that no old one is used, and says in one
/// line what is missing.
///
/// # Errors
/// The programs do not build.
pub(crate) fn build_if_possible() -> Result<()> {
    match Tools::find() {
        Ok(tools) => build(&tools).map(drop),
        Err(reason) => {
            eprintln!(
                "ebpf: building without BPF programs: {reason:#}; `cargo xtask ebpf` gets it"
            );
            match fs::remove_file(object()) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    Err(error).context("cannot remove an object from an earlier build")
                }
                _ => Ok(()),
            }
        }
    }
}

fn object() -> PathBuf {
    ebpf().join("object/aegis.bpf.o")
}

fn build(tools: &Tools) -> Result<PathBuf> {
    let mut command = command(tools);
    capture(&mut command)?;
    let built = ebpf_target().join(TARGET).join("release/aegis");
    let fresh = fs::read(&built)
        .with_context(|| format!("`{}` left no {}", line(&command), built.display()))?;
    if !fresh.starts_with(b"\x7fELF") {
        bail!("{} is no ELF object", built.display());
    }
    let object = object();
    // Written only if it changed: the daemon is built anew whenever it is.
    if fs::read(&object).ok().as_ref() != Some(&fresh) {
        let parent = object.parent().ok_or_else(|| anyhow!("no directory"))?;
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&object, &fresh))
            .with_context(|| format!("cannot write {}", object.display()))?;
    }
    Ok(object)
}

fn command(tools: &Tools) -> Command {
    let flags = flags(&tools.linker).join("\x1f");
    let mut command = tools.compiler.cargo();
    command
        .current_dir(ebpf())
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--bin",
            "aegis",
        ])
        .args(["--target", TARGET, "--target-dir"])
        .arg(ebpf_target())
        .env("CARGO_ENCODED_RUSTFLAGS", flags);
    command
}

fn flags(linker: &Path) -> Vec<String> {
    vec![
        format!("--cfg=bpf_target_arch=\"{}\"", std::env::consts::ARCH),
        "-Cdebuginfo=2".to_owned(),
        // Keeps the types of maps, which the kernel and bpftool show.
        "-Clink-arg=--btf".to_owned(),
        format!("-Clinker={}", linker.display()),
        format!("--remap-path-prefix={}=/aegis", root().display()),
    ]
}
