//! Every developer command: `cargo xtask setup | test | lint | demo | bench | compat | hooks | ebpf | install`.
//!
//! One file per verb. All of them print progress as `verb: …`, stop at the first thing that makes
//! going on pointless, and name the command that repairs it.

mod artifacts;
mod bench;
mod command;
mod compat;
mod demo;
mod ebpf;
mod evaluate;
mod hooks;
mod install;
mod lint;
mod setup;
mod test;
mod versions;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Developer commands of AEGIS",
    after_help = "Examples:\n  cargo xtask setup          check the machine, install what is missing\n  \
                  cargo xtask test           build everything and run every test\n  \
                  cargo xtask lint           formatting, clippy, rustdoc, licences, layering, shim gates\n  \
                  cargo xtask demo           two simulated GPUs shared by a dozen training jobs\n  \
                  cargo xtask bench scheduler --json   what the scheduling loop costs, simulated driver\n  \
                  cargo xtask bench shim --json        what the preload library costs\n  \
                  cargo xtask compat         client software from PyPI under the shim, simulated driver\n  \
                  cargo xtask hooks          does the hook table know all of NVIDIA's cuda.h?"
)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Check the toolchain and install what is missing (nothing outside target/ and cargo's bin)
    Setup(setup::Options),
    /// Build everything and run every test; the last line is `N passed, M failed, K skipped`
    Test(test::Options),
    /// Run every check that needs no execution
    Lint(lint::Options),
    /// Watch AEGIS share two simulated GPUs among real processes, and compare
    Demo(demo::Options),
    /// Measure what AEGIS costs, on the simulated driver
    Bench(bench::Options),
    /// Run real client software under the shim on the simulated driver
    Compat(compat::Options),
    /// Replay generated traces under every policy: ratios to exclusive use
    Evaluate(evaluate::Options),
    /// Build the BPF programs that follow jobs' processes; finds or installs a compiler
    Ebpf(ebpf::Options),
    /// Compare the shim's hook table with NVIDIA's cuda.h
    Hooks(hooks::Options),
    /// Build optimised binaries and copy them and the systemd unit below a prefix
    Install(install::Options),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().verb {
        Verb::Setup(options) => setup::run(&options),
        Verb::Test(options) => test::run(&options),
        Verb::Lint(options) => lint::run(&options),
        Verb::Demo(options) => demo::run(&options),
        Verb::Evaluate(options) => evaluate::run(&options),
        Verb::Compat(options) => compat::run(&options),
        Verb::Bench(options) => bench::run(&options),
        Verb::Ebpf(options) => ebpf::run(&options),
        Verb::Hooks(options) => hooks::run(&options),
        Verb::Install(options) => install::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
