//! Every version that set-up pins, in one place.

/// Oldest Rust that builds the workspace (`rust-version` in the root `Cargo.toml`).
pub(crate) const RUST: (u32, u32) = (1, 95);
/// Test runner; also the version that is installed when it is missing or older.
pub(crate) const NEXTEST: &str = "0.9.143";
/// Licence, ban and source checks.
pub(crate) const DENY: &str = "0.20.2";
/// Linker of the BPF programs; built against the LLVM of their compiler.
pub(crate) const BPF_LINKER: &str = "0.13.0";
/// The framework whose training script the demo and the tests run unmodified.
pub(crate) const TINYGRAD: &str = "0.14.0";
/// Wheels of NVIDIA's runtime whose `cuda.h` the hook table is compared with.
pub(crate) const CUDA_HEADERS: [(&str, &str); 2] = [
    ("nvidia-cuda-runtime-cu12", "12.9.79"),
    ("nvidia-cuda-runtime", "13.5.37"),
];
