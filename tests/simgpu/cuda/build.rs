//! Gives the library the driver's soname, so that a program linked to it asks for `libcuda.so.1`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
}
