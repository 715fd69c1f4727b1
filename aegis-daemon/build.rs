//! Takes the BPF object of `cargo xtask ebpf` into the daemon; an empty file stands for none.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../aegis-ebpf/object");
    // A directory is always there, so cargo builds anew only when the object comes, changes or goes.
    println!("cargo::rerun-if-changed={}", directory.display());
    println!("cargo::rerun-if-changed=build.rs");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    let object = match fs::read(directory.join("aegis.bpf.o")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    fs::write(Path::new(&out).join("aegis.bpf.o"), object)
}
