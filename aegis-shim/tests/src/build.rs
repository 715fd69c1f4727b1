//! Builds what the tests run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Paths of everything that was built.
#[derive(Debug)]
pub struct Built {
    /// `libaegis_shim.so`.
    pub shim: PathBuf,
    /// Holds `libcuda.so.1` and the clients `client` and `client_direct`.
    pub directory: PathBuf,
}

/// Builds once per test process.
///
/// # Panics
/// If cargo or the C compiler fails.
pub fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let shim = shim();
        // In the target directory, where the next run finds it again.
        let directory = shim.with_file_name("fixtures");
        std::fs::create_dir_all(&directory).expect("a directory");
        driver(&directory);
        client(&directory, "client", &[]);
        Built { shim, directory }
    })
}

/// Compiles the fake driver and the fake NVML into a directory.
///
/// # Panics
/// If the compiler fails.
pub fn driver(directory: &Path) {
    for (source, library) in [
        ("fake_libcuda.c", "libcuda.so.1"),
        ("fake_nvml.c", "libnvidia-ml.so.1"),
    ] {
        let soname = format!("-Wl,-soname,{library}");
        cc(
            &["-shared", "-fPIC", &soname],
            &[source],
            &directory.join(library),
            &[],
        );
    }
}

/// Compiles `NAME.c` beside the fake driver: as `NAME`, which looks the driver's functions up, and as
/// `NAME_direct`, which is linked to it.
///
/// # Panics
/// If the compiler fails.
pub fn client(directory: &Path, name: &str, options: &[&str]) {
    let source = format!("{name}.c");
    cc(options, &[&source], &directory.join(name), &["-ldl"]);
    let driver = directory.join("libcuda.so.1");
    let driver = driver.to_str().expect("a plain path");
    cc(
        &[options, &["-DDIRECT"]].concat(),
        &[&source],
        &directory.join(format!("{name}_direct")),
        &[driver],
    );
}

/// The preload library, built by cargo as for installation but unoptimised.
fn shim() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--package",
            "aegis-shim",
            "--message-format=json",
        ])
        .current_dir(workspace)
        .output()
        .expect("cargo runs");
    let messages = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{messages}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // One JSON message per line; the library's names its file in quotes.
    messages
        .split('"')
        .find(|text| text.ends_with("/libaegis_shim.so"))
        .map(PathBuf::from)
        .expect("cargo names the library")
}

/// Compiles fixtures with the system's C compiler.
///
/// # Panics
/// If the compiler fails.
pub fn cc(before: &[&str], sources: &[&str], output: &Path, after: &[&str]) {
    compile("cc", before, sources, output, after);
}

/// As [`cc`], with a compiler of choice.
///
/// # Panics
/// If the compiler fails.
pub fn compile(compiler: &str, before: &[&str], sources: &[&str], output: &Path, after: &[&str]) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    // Replaced in one step: another test process may be running the old one.
    let fresh = output.with_extension(format!("new-{}", std::process::id()));
    let status = Command::new(compiler)
        .args(["-O1", "-Wall", "-pthread", "-o"])
        .arg(&fresh)
        .args(before)
        .args(sources.iter().map(|source| fixtures.join(source)))
        .args(after)
        .status()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(status.success(), "{compiler} failed on {sources:?}");
    std::fs::rename(&fresh, output).expect("the same directory");
}

/// Whether a program can be run at all.
#[must_use]
pub fn is_installed(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}
