//! Link arguments of the preload library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        // No start files: they would add .init_array and .fini_array entries that run in every process.
        "-nostartfiles",
        "-Wl,-soname,libaegis_shim.so",
        "-Wl,--gc-sections",
        "-Wl,-z,nodelete",
        // An undefined symbol would end every process that preloads the library.
        "-Wl,-z,defs",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
