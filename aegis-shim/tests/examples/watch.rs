//! Runs a command with the shim under a daemon that grants everything, and shows the ledgers.
//!
//! `cargo run --package aegis-shim-tests --example watch -- COMMAND…`, with the driver to use on
//! `LD_LIBRARY_PATH`.

use std::process::Command;
use std::sync::atomic::Ordering::SeqCst;

use aegis_common::abi::MAX_GPUS;
use aegis_common::abi::ledger::{BYPASS_NAMES, KIND_NAMES};
use aegis_shim_tests::build::built;
use aegis_shim_tests::daemon::{FakeDaemon, TOKEN};

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().expect("watch COMMAND…");
    let daemon = FakeDaemon::start();
    let status = Command::new(program)
        .args(arguments)
        .env("LD_PRELOAD", &built().shim)
        .env("AEGIS_SHIM_SOCKET", daemon.path())
        .env("AEGIS_JOB_TOKEN", TOKEN)
        .status()
        .expect("it starts");
    println!("{status}, {} processes registered", daemon.registered());
    for process in 0..daemon.registered() {
        let ledger = daemon.ledger(process);
        let header = ledger.header();
        for gpu in (0..MAX_GPUS).map(|slot| ledger.gpu(slot)) {
            if gpu.uuid[0].load(SeqCst) == 0 && gpu.uuid[1].load(SeqCst) == 0 {
                continue;
            }
            print!("process {process}, GPU {:x}:", gpu.uuid[0].load(SeqCst));
            for (name, used) in KIND_NAMES.iter().zip(&gpu.used) {
                print!(" {name} {}", used.load(SeqCst));
            }
            println!(
                ", peak {}, allocs {}, frees {}, denials {}, driver ooms {}",
                gpu.peak.load(SeqCst),
                gpu.allocs.load(SeqCst),
                gpu.frees.load(SeqCst),
                gpu.denials.load(SeqCst),
                gpu.driver_ooms.load(SeqCst)
            );
        }
        let kernels: u64 = ledger
            .launch_lines()
            .map(|line| line.kernels.load(SeqCst))
            .sum();
        let copies: u64 = ledger
            .launch_lines()
            .map(|line| line.copies.load(SeqCst))
            .sum();
        println!("process {process}: kernels {kernels}, copies {copies}");
        println!(
            "process {process}: unknown look-ups {}",
            header.unknown_lookups.load(SeqCst)
        );
        for (name, count) in BYPASS_NAMES.iter().zip(&header.bypass) {
            if count.load(SeqCst) > 0 {
                println!(
                    "process {process}: passed through {name} {}",
                    count.load(SeqCst)
                );
            }
        }
    }
}
