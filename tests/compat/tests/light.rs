//! The light set of `cargo xtask compat`: clients that install in seconds. Without them a test is
//! skipped, with the reason.

use anyhow::Result;
use compat::check::check;
use compat::client::{CLIENTS, Client};

fn passes(name: &str) -> Result<()> {
    let client = Client::named(name).expect("in the list");
    assert!(client.light, "{name} is in the light set");
    let row = check(client)?;
    if let Some(reason) = &row.skipped {
        e2e::skip!("{name}: {reason}: run cargo xtask compat");
    }
    assert!(!row.failed(), "{row}");
    Ok(())
}

#[test]
fn cuda_bindings_allocates_by_every_family() -> Result<()> {
    passes("cuda-bindings")
}

#[test]
fn a_reset_of_the_primary_context_empties_the_ledger() -> Result<()> {
    passes("cuda-bindings, reset")
}

#[test]
fn nvml_and_the_driver_agree() -> Result<()> {
    passes("nvidia-ml-py")
}

#[test]
fn gpustat_shows_the_declared_gpu() -> Result<()> {
    passes("gpustat")
}

#[test]
fn nvitop_runs() -> Result<()> {
    passes("nvitop")
}

#[test]
fn every_light_client_has_a_test() {
    assert_eq!(CLIENTS.iter().filter(|client| client.light).count(), 5);
}
