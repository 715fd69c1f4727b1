//! Builds a stand-in for `libcuda.so` to link `workload-linked` against, so that no driver is needed
//! to build it. Only its SONAME and symbol names matter: at run time the dynamic linker loads
//! whatever `libcuda.so.1` it finds.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

const DECLARATIONS: &str = "src/linked/ffi.rs";

fn main() {
    println!("cargo::rerun-if-changed={DECLARATIONS}");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let text = fs::read_to_string(DECLARATIONS).expect("the declarations are readable");
    let source: String = text
        .lines()
        .map(str::trim)
        .filter(|line| {
            line.starts_with("cu") && line.chars().all(|c| c.is_alphanumeric() || c == '_')
        })
        .map(|name| format!("void {name}(void) {{}}\n"))
        .collect();
    let file = out.join("standin.c");
    fs::write(&file, source).expect("OUT_DIR is writable");
    // The compiler driver that rustc itself calls as its linker.
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status = Command::new(&compiler)
        .args(["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o"])
        .arg(out.join("libcuda_standin.so"))
        .arg(&file)
        .status();
    assert!(
        status.as_ref().is_ok_and(std::process::ExitStatus::success),
        "{} cannot build a shared library: {status:?}",
        compiler.display()
    );
    println!("cargo::rustc-link-search=native={}", out.display());
}
