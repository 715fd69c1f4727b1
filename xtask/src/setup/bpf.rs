//! What builds the BPF programs. Everything else works without.

use super::{Step, Verb};
use crate::ebpf::{Tools, install_tools};

/// How a person gets it.
pub(crate) const BY_HAND: &str = "as root apt-get install rustc-web libstd-rust-web-dev-bpf, or \
                                  rustup toolchain install nightly --component rust-src, or name \
                                  a compiler with AEGIS_BPF_RUSTC; then cargo xtask ebpf";

/// Compiler and linker.
pub(crate) fn steps() -> Vec<Step> {
    vec![Step {
        name: "BPF compiler",
        required_by: &[],
        used_by: &[Verb::Ebpf, Verb::Install],
        check: || Tools::find().map(|tools| tools.describe()),
        install: install_tools,
        by_hand: BY_HAND,
    }]
}
