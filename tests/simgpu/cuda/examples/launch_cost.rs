//! What one launch costs on the simulated driver: `cargo run -p simgpu-cuda --example launch_cost`.
//!
//! Prints ns per `cuLaunchKernel` with `zero_duration` (each process that runs this makes and
//! removes its own machine). The shim's own cost can only be seen if this is small.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::time::Instant;

use libloading::{Library, Symbol};
use simgpu_core::kernel::PTX;
use simgpu_core::{Machine, MachineConfig};

type Launch = unsafe extern "C" fn(u64, u32, u32, u32, u32, u32, u32, u32, u64, *const c_void, *const c_void) -> i32;

const LAUNCHES: u32 = 10_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let program = std::env::current_exe()?;
    let built = program.parent().and_then(Path::parent).ok_or("no target directory")?;
    let directory: PathBuf = std::env::temp_dir().join(format!("simgpu-launch-cost-{}", std::process::id()));
    let config = MachineConfig { zero_duration: true, ..MachineConfig::default() };
    let machine = Machine::create(&directory, &config)?;
    machine.install_libraries(&built.join("libsimgpu_cuda.so"), &built.join("libsimgpu_nvml.so"))?;
    let outcome = measure(&directory);
    std::fs::remove_dir_all(&directory)?;
    outcome
}

fn check(code: i32) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("driver call returned {code}")) }
}

fn measure(directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
    // SAFETY: the library built beside this program; loading it runs no code of its own.
    let library = unsafe { Library::new(directory.join("libcuda.so.1")) }?;
    // SAFETY: the signatures in this function are those of cuda.h.
    let init: Symbol<'_, unsafe extern "C" fn(u32) -> i32> = unsafe { library.get("cuInit") }?;
    // SAFETY: as above.
    let create: Symbol<'_, unsafe extern "C" fn(*mut u64, u32, i32) -> i32> = unsafe { library.get("cuCtxCreate_v2") }?;
    // SAFETY: as above.
    let load: Symbol<'_, unsafe extern "C" fn(*mut u64, *const u8) -> i32> = unsafe { library.get("cuModuleLoadData") }?;
    // SAFETY: as above.
    let get: Symbol<'_, unsafe extern "C" fn(*mut u64, u64, *const u8) -> i32> =
        unsafe { library.get("cuModuleGetFunction") }?;
    // SAFETY: as above.
    let launch: Symbol<'_, Launch> = unsafe { library.get("cuLaunchKernel") }?;
    let (mut context, mut module, mut function) = (0, 0, 0);
    // SAFETY: no pointers.
    check(unsafe { init(0) })?;
    // SAFETY: a valid place for the context.
    check(unsafe { create(&raw mut context, 0, 0) })?;
    // SAFETY: a valid place, and a NUL-terminated image.
    check(unsafe { load(&raw mut module, PTX.as_ptr()) })?;
    // SAFETY: a valid place, and a NUL-terminated name.
    check(unsafe { get(&raw mut function, module, c"sim_timed".as_ptr().cast()) })?;
    for round in 0..5 {
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            // SAFETY: with zero duration the arguments are not read.
            let code = unsafe {
                launch(function, 1, 1, 1, 32, 1, 1, 0, 0, std::ptr::null(), std::ptr::null())
            };
            check(code)?;
        }
        let each = start.elapsed().as_nanos() as f64 / f64::from(LAUNCHES);
        println!("round {round}: {each:.2} ns per cuLaunchKernel (simulated driver, zero duration)");
    }
    Ok(())
}
