//! A Rust compiler that can build for the kernel's virtual machine.
//!
//! The target's core library comes with no toolchain of rustup. Either it is built from source,
//! which only a nightly does, or the compiler brings it along: Debian's `rustc-web` does, and is in
//! every Debian release because Firefox and Chromium are built with it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use crate::command::{self, capture};
use crate::setup::tools::apt;

/// The target triple: little-endian, as x86-64 and aarch64 are.
pub(crate) const TARGET: &str = "bpfel-unknown-none";
/// Names a compiler that has the target's core library.
const OVERRIDE: &str = "AEGIS_BPF_RUSTC";
/// Debian's compiler. rustup's own comes earlier on `PATH`.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
/// The Debian packages: compiler and prebuilt core library.
const DEBIAN_PACKAGES: [&str; 2] = ["rustc-web", "libstd-rust-web-dev-bpf"];

/// A compiler.
#[derive(Debug)]
pub(crate) enum Compiler {
    /// Has the core library.
    Prebuilt {
        /// The program.
        rustc: PathBuf,
        /// `rustc --version`.
        version: String,
    },
    /// rustup's nightly with `rust-src`: the core library is built too.
    Nightly {
        /// `rustc --version`.
        version: String,
    },
}

impl Compiler {
    /// The override, else a nightly with `rust-src`, else Debian's.
    ///
    /// # Errors
    /// None is there.
    pub(crate) fn find() -> Result<Self> {
        if let Some(rustc) = std::env::var_os(OVERRIDE).map(PathBuf::from) {
            return prebuilt(&rustc).with_context(|| format!("{OVERRIDE}={}", rustc.display()));
        }
        nightly().or_else(|no_nightly| {
            prebuilt(Path::new(DEBIAN_RUSTC)).map_err(|no_debian| {
                anyhow!("no compiler for {TARGET} ({no_nightly:#}; {no_debian:#})")
            })
        })
    }

    /// `cargo` with this compiler. The toolchain that runs this task must not leak in.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = match self {
            Self::Prebuilt { rustc, .. } => {
                let mut command = command::cargo();
                // `aya-ebpf` declares one unstable feature, which a stable compiler allows only to
                // the crate named here.
                command
                    .env("RUSTC", rustc)
                    .env("RUSTC_BOOTSTRAP", "aya_ebpf");
                command
            }
            Self::Nightly { .. } => {
                let mut command = Command::new("rustup");
                command
                    .args(["run", "nightly", "cargo", "-Zbuild-std=core"])
                    .env_remove("RUSTC")
                    .env_remove("RUSTUP_TOOLCHAIN");
                command
            }
        };
        for leaking in ["RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
            command.env_remove(leaking);
        }
        command
    }

    /// The major version of the compiler's LLVM: the linker's must be the same.
    ///
    /// # Errors
    /// The compiler does not say.
    pub(crate) fn llvm_major(&self) -> Result<u32> {
        let text = match self {
            Self::Prebuilt { rustc, .. } => capture(&mut rustc_command(rustc, &["-vV"]))?,
            Self::Nightly { .. } => capture(&mut nightly_command(&["-vV"]))?,
        };
        llvm_major(&text).ok_or_else(|| anyhow!("`rustc -vV` names no LLVM version"))
    }
}

impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prebuilt { rustc, version } => {
                write!(f, "{version} at {} with its core library", rustc.display())
            }
            Self::Nightly { version } => write!(f, "rustup's nightly, {version}, with rust-src"),
        }
    }
}

/// Gets a compiler: Debian's as root, else rustup's nightly.
///
/// # Errors
/// Neither can be had.
pub(crate) fn install() -> Result<()> {
    if std::env::var_os(OVERRIDE).is_some() {
        bail!("{OVERRIDE} is set; unset it to let one be installed");
    }
    apt(&DEBIAN_PACKAGES).or_else(|no_apt| {
        command::run(
            Command::new("rustup")
                .args(["toolchain", "install", "nightly", "--profile", "minimal"])
                .args(["--component", "rust-src"]),
        )
        .map_err(|no_rustup| anyhow!("{no_apt:#}; {no_rustup:#}"))
    })
}

fn prebuilt(rustc: &Path) -> Result<Compiler> {
    let version = capture(&mut rustc_command(rustc, &["--version"]))?;
    let directory = capture(&mut rustc_command(
        rustc,
        &["--print", "target-libdir", "--target", TARGET],
    ))?;
    let has_core = std::fs::read_dir(directory.trim()).is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libcore-") && name.ends_with(".rlib")
        })
    });
    if !has_core {
        bail!("{} has no core library for {TARGET}", rustc.display());
    }
    Ok(Compiler::Prebuilt {
        rustc: rustc.to_owned(),
        version: version.trim().to_owned(),
    })
}

fn nightly() -> Result<Compiler> {
    let sysroot = capture(&mut nightly_command(&["--print", "sysroot"]))
        .map_err(|_| anyhow!("no nightly toolchain"))?;
    let source = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/core/src/lib.rs");
    if !source.exists() {
        bail!("the nightly toolchain lacks rust-src");
    }
    let version = capture(&mut nightly_command(&["--version"]))?;
    Ok(Compiler::Nightly {
        version: version.trim().to_owned(),
    })
}

fn rustc_command(rustc: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(rustc);
    command.args(arguments);
    command
}

fn nightly_command(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command
        .args(["run", "nightly", "rustc"])
        .args(arguments)
        .env("RUSTUP_AUTO_INSTALL", "0")
        .env_remove("RUSTUP_TOOLCHAIN");
    command
}

fn llvm_major(text: &str) -> Option<u32> {
    let version = text
        .lines()
        .find_map(|line| line.strip_prefix("LLVM version: "))?;
    version.split('.').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_llvm_version_is_read_from_the_compilers_own_words() {
        let text = "rustc 1.96.0\nhost: x86_64-unknown-linux-gnu\nLLVM version: 22.1.8\n";
        assert_eq!(llvm_major(text), Some(22));
        assert_eq!(llvm_major("rustc 1.96.0"), None);
    }

    #[test]
    fn a_compiler_without_the_core_library_is_refused_by_name() {
        // The one that builds this has none: rustup ships none.
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let error = prebuilt(Path::new(&rustc)).unwrap_err().to_string();
        assert!(error.contains(TARGET), "{error}");
    }
}
