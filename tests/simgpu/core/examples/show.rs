//! Prints what is on a simulated machine: `show DIR`.

use std::path::PathBuf;

use simgpu_core::{Error, Machine};

fn main() -> Result<(), Error> {
    let directory = std::env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .unwrap_or_default();
    let machine = Machine::open(&directory)?;
    println!("{:#?}", machine.timeline());
    Ok(())
}
