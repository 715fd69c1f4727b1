//! What one launch costs on the simulated driver: `cargo run -p simgpu-cuda --example launch_cost`.
//!
//! Prints ns per `cuLaunchKernel` with `zero_duration`. The shim's own cost can only be seen if
//! this is small.

#[path = "../tests/ffi/mod.rs"]
mod ffi;

use simgpu_core::MachineConfig;

const LAUNCHES: u32 = 10_000_000;

fn main() {
    let config = MachineConfig {
        zero_duration: true,
        ..MachineConfig::default()
    };
    let fixture = ffi::Fixture::new(&config);
    let driver = fixture.ready();
    let function = driver.timed();
    for round in 0..5 {
        let each = driver.time_launches(function, LAUNCHES).as_nanos() as f64 / f64::from(LAUNCHES);
        println!(
            "round {round}: {each:.2} ns per cuLaunchKernel (simulated driver, zero duration)"
        );
    }
}
