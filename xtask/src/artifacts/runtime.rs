//! Linking our own CUDA runtime and the cuBLAS stubs: a library of rustc's own making has no symbol
//! versions, without which programs built against NVIDIA's libraries do not start.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::Profile;
use crate::command::{capture, cargo, run};
use crate::workspace::{root, target};

/// One library of an API version.
struct Library {
    /// Also its file name and its symbols' version.
    soname: &'static str,
    archive: &'static str,
    /// Symbols that it exports, as the linker's wild cards.
    exports: &'static [&'static str],
}

/// What an API version consists of.
struct Api {
    directory: &'static str,
    /// What `cudaRuntimeGetVersion` says.
    version: u32,
    libraries: &'static [Library],
}

const RUNTIME: &[&str] = &["cuda*", "__cuda*"];

const APIS: &[Api] = &[
    Api {
        directory: "cuda-12",
        version: 12080,
        libraries: &[
            Library {
                soname: "libcudart.so.12",
                archive: "libsimgpu_cudart.a",
                exports: RUNTIME,
            },
            Library {
                soname: "libcublas.so.12",
                archive: "libsimgpu_cublas.a",
                exports: &["cublas[A-KM-Z]*"],
            },
            Library {
                soname: "libcublasLt.so.12",
                archive: "libsimgpu_cublas.a",
                exports: &["cublasLt*"],
            },
        ],
    },
    Api {
        directory: "cuda-13",
        version: 13000,
        libraries: &[Library {
            soname: "libcudart.so.13",
            archive: "libsimgpu_cudart.a",
            exports: RUNTIME,
        }],
    },
];

/// Builds the runtime for both API versions, shared and as a static archive, into `cuda-12` and
/// `cuda-13` beside the other artifacts.
///
/// # Errors
/// It did not build, or the C compiler or binutils are missing.
pub(crate) fn build(profile: Profile) -> Result<()> {
    run(cargo()
        .current_dir(root())
        .args(["build", "--quiet", "--locked"])
        .args(["--package", "simgpu-cudart", "--package", "simgpu-cublas"])
        .args(profile.arguments()))?;
    let archives = target().join(profile.directory());
    for api in APIS {
        link(api, &archives).with_context(|| format!("linking the runtime {}", api.directory))?;
    }
    Ok(())
}

fn link(api: &Api, archives: &Path) -> Result<()> {
    let directory = archives.join(api.directory);
    std::fs::create_dir_all(&directory)?;
    let version = assemble(&directory, "version", &version_source(api.version))?;
    for library in api.libraries {
        let archive = archives.join(library.archive);
        let path = directory.join(library.soname);
        if is_newer(&path, &archive) {
            continue;
        }
        let script = directory.join(format!("{}.map", library.soname));
        let exports = library.exports.join("; ");
        std::fs::write(
            &script,
            format!("{} {{ global: {exports}; local: *; }};\n", library.soname),
        )?;
        // Beside the one that a program may have mapped, then in its place.
        let fresh = directory.join(format!("{}.new", library.soname));
        run(Command::new("cc")
            .args(["-shared", "-Wl,-z,defs", "-Wl,--gc-sections"])
            .arg(format!("-Wl,-soname,{}", library.soname))
            .arg(format!("-Wl,--version-script,{}", script.display()))
            .arg("-Wl,--whole-archive")
            .arg(&archive)
            .arg("-Wl,--no-whole-archive")
            .arg(&version)
            .arg("-o")
            .arg(&fresh))?;
        std::fs::rename(&fresh, &path)?;
        if library.archive == "libsimgpu_cudart.a" {
            static_archive(&directory, &path, &archive, api.version)?;
        }
    }
    Ok(())
}

/// `libcudart_static.a`: one object whose functions are hidden, so that a program linked to it
/// exports none of them, and whose other symbols are nobody's business.
fn static_archive(directory: &Path, shared: &Path, archive: &Path, version: u32) -> Result<()> {
    let listed = capture(
        Command::new("nm")
            .args(["--dynamic", "--defined-only", "--format=posix"])
            .arg(shared),
    )?;
    let names = listed
        .lines()
        .filter_map(|line| line.split(['@', ' ']).next())
        .filter(|name| name.contains("cuda"));
    let mut source = version_source(version);
    for name in names {
        // Of all that objects say about a symbol the linker keeps the most restrictive.
        writeln!(source, ".globl {name}\n.hidden {name}")?;
    }
    let hidden = assemble(directory, "hidden", &source)?;
    let whole = directory.join("cudart.o");
    run(Command::new("ld")
        .args(["-r", "-o"])
        .arg(&whole)
        .arg("--whole-archive")
        .arg(archive)
        .arg("--no-whole-archive")
        .arg(&hidden))?;
    run(Command::new("objcopy")
        // The standard library's bitcode is of no use here, and crashes an ar with an older LLVM.
        .args(["--wildcard", "--strip-debug", "--remove-section=.llvm*"])
        .args(
            RUNTIME
                .iter()
                .map(|name| format!("--keep-global-symbol={name}")),
        )
        .arg(&whole))?;
    let path = directory.join("libcudart_static.a");
    if path.exists() {
        std::fs::remove_file(&path)?;
    }
    run(Command::new("ar").arg("rcs").arg(&path).arg(&whole))?;
    std::fs::remove_file(&whole).context("cudart.o")
}

/// The version as the runtime reads it, in assembly: it differs between libraries of one archive.
fn version_source(version: u32) -> String {
    format!(
        ".section .note.GNU-stack,\"\",%progbits\n.section .rodata\n.balign 4\n\
         .globl simgpu_cudart_version\n.hidden simgpu_cudart_version\n\
         simgpu_cudart_version: .long {version}\n"
    )
}

fn assemble(directory: &Path, name: &str, source: &str) -> Result<PathBuf> {
    let path = directory.join(format!("{name}.s"));
    let object = directory.join(format!("{name}.o"));
    std::fs::write(&path, source)?;
    run(Command::new("cc")
        .arg("-c")
        .arg(&path)
        .arg("-o")
        .arg(&object))?;
    Ok(object)
}

/// Whether a file is there and not older than another.
fn is_newer(path: &Path, than: &Path) -> bool {
    let modified = |path: &Path| path.metadata().and_then(|meta| meta.modified()).ok();
    matches!((modified(path), modified(than)), (Some(a), Some(b)) if a >= b)
}
