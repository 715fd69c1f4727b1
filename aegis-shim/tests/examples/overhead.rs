//! What a hooked call costs above the fake driver's own nanoseconds.
//!
//! `cargo run --release --package aegis-shim-tests --example overhead`

use std::path::PathBuf;

use aegis_shim_tests::client::{Setup, Way};
use aegis_shim_tests::daemon::{FakeDaemon, nobody};

/// Calls per figure.
const CALLS: u32 = 4_000_000;
/// The medians' samples.
const RUNS: usize = 5;

fn main() {
    let shim = std::env::args_os().nth(1).map_or_else(
        || PathBuf::from("target/release/libaegis_shim.so"),
        PathBuf::from,
    );
    assert!(
        shim.is_file(),
        "build {} first: cargo build --release",
        shim.display()
    );
    println!("{CALLS} calls a figure, {RUNS} runs each, fake driver that does nothing");
    for way in [Way::Gpa12, Way::Direct] {
        for case in ["bare", "no daemon", "active", "active, limit"] {
            let daemon = FakeDaemon::start();
            if case == "active, limit" {
                daemon
                    .line(0)
                    .limit
                    .store(1 << 40, std::sync::atomic::Ordering::SeqCst);
            }
            for _ in 0..RUNS {
                let setup = match case {
                    "bare" => Setup::bare(way),
                    "no daemon" => Setup::with_shim(way, nobody()).env("LD_PRELOAD", &shim),
                    _ => Setup::with_shim(way, &daemon.path()).env("LD_PRELOAD", &shim),
                };
                let mut client = setup.env("FAKE_CUDA_QUIET", "1").start();
                client.begin();
                client.tell(&format!("bench {CALLS}"));
                println!("{way:?}, {case}: {}", client.line());
                client.end();
            }
        }
    }
}
