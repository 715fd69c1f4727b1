//! Makes a driver directory with the built libraries, and prints how to use it.
//!
//! `cargo run -p simgpu-core --example machine -- DIR [GPUS] [MIB] [zero]`

use std::path::Path;

use simgpu_core::config::MIB;
use simgpu_core::{Error, Machine, MachineConfig, built_libraries};

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(directory) = arguments.first() else {
        return Err(Error::Config(
            "give a directory: machine DIR [GPUS] [MIB] [zero]".to_owned(),
        ));
    };
    let number = |index: usize, default: u64| {
        let given = arguments.get(index).map(|text| text.parse());
        given
            .unwrap_or(Ok(default))
            .map_err(|_| Error::Config(format!("argument {index}: not a number")))
    };
    let mut config = MachineConfig::uniform(number(1, 2)? as usize, number(2, 40 * 1024)? * MIB);
    config.zero_duration = arguments.iter().any(|a| a == "zero");
    let machine = Machine::create(Path::new(directory), &config)?;
    let missing = || Error::Config("build simgpu-cuda and simgpu-nvml first".to_owned());
    let (cuda, nvml) = built_libraries().ok_or_else(missing)?;
    machine.install_libraries(&cuda, &nvml)?;
    println!("export LD_LIBRARY_PATH={}", machine.directory().display());
    Ok(())
}
