//! `bpf-linker`, which makes one object of the compiler's bitcode.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow};

use crate::command::{self, capture, cargo};
use crate::versions::BPF_LINKER;
use crate::workspace::target;

/// Names a linker.
const OVERRIDE: &str = "AEGIS_BPF_LINKER";
/// Where Debian keeps shared libraries.
const LIBRARIES: &str = "/usr/lib";

/// The override, else the one on `PATH` or in cargo's `bin`.
///
/// # Errors
/// None is there, or it does not start.
pub(crate) fn find() -> Result<PathBuf> {
    let linker = match std::env::var_os(OVERRIDE) {
        Some(linker) => PathBuf::from(linker),
        None => on_path().ok_or_else(|| anyhow!("no bpf-linker on PATH"))?,
    };
    capture(Command::new(&linker).arg("--version"))?;
    Ok(linker)
}

/// Builds it with cargo against the LLVM that the compiler uses. Its build wants nothing of LLVM
/// but the shared library, under its development name.
///
/// # Errors
/// The library is not there, or the build fails.
pub(crate) fn install(llvm: u32) -> Result<()> {
    let library = library(Path::new(LIBRARIES), llvm).ok_or_else(|| {
        anyhow!(
            "no libLLVM-{llvm}.so in {LIBRARIES}: install libllvm{llvm}, or put bpf-linker on \
             PATH, or name it with {OVERRIDE}"
        )
    })?;
    let prefix = target().join("bpf-linker-llvm");
    let link = prefix.join("lib/libLLVM.so");
    std::fs::create_dir_all(prefix.join("lib"))
        .and_then(|()| match std::fs::remove_file(&link) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => symlink(&library, &link),
        })
        .with_context(|| format!("cannot make {}", link.display()))?;
    command::run(
        cargo()
            .args([
                "install",
                "--quiet",
                "--locked",
                "bpf-linker",
                "--version",
                BPF_LINKER,
            ])
            .args(["--no-default-features", "--features"])
            .arg(format!("llvm-{llvm}"))
            .env("LLVM_PREFIX", &prefix)
            .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
            // By default it is one codegen unit with full optimisation; it runs for a second here.
            .env("CARGO_PROFILE_RELEASE_LTO", "off"),
    )
}

/// The LLVM library of that version in the directory or one below (`x86_64-linux-gnu`).
fn library(below: &Path, llvm: u32) -> Option<PathBuf> {
    let name = format!("libLLVM-{llvm}.so");
    let inside = std::fs::read_dir(below).ok()?.flatten();
    let directories = inside
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path());
    std::iter::once(below.to_owned())
        .chain(directories)
        .map(|directory| directory.join(&name))
        .find(|path| path.exists())
}

fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let cargo_home = std::env::var_os("CARGO_HOME").map(|home| PathBuf::from(home).join("bin"));
    std::env::split_paths(&path)
        .chain(cargo_home)
        .map(|directory| directory.join("bpf-linker"))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_below_an_architectures_directory() {
        let dir = tempfile::tempdir().unwrap();
        let arch = dir.path().join("x86_64-linux-gnu");
        std::fs::create_dir(&arch).unwrap();
        std::fs::write(arch.join("libLLVM-22.so"), "").unwrap();
        assert_eq!(library(dir.path(), 22), Some(arch.join("libLLVM-22.so")));
        assert_eq!(library(dir.path(), 23), None);
    }
}
