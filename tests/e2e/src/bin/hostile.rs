//! A job whose ledger has a valid header and lies: `hostile MODE BYTES`.
//!
//! It holds BYTES of GPU 0 without the shim's knowledge and then, by MODE, claims nothing (`zero`),
//! writes counters near the top of their range (`wrap`), lets counters fall (`falling`), or cuts the
//! ledger short (`truncate`). Prints `READY <pid>` and stays; SIGTERM ends it.

use std::mem::offset_of;

use aegis_common::abi::ledger::GpuLine;
use anyhow::{Context, Result, bail};
use e2e::HostileShim;
use simgpu_core::{AllocationKind, Machine, self_identity};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().context("MODE is missing")?;
    let bytes: u64 = arguments.next().context("BYTES is missing")?.parse()?;
    let driver = std::env::var_os("LD_LIBRARY_PATH").context("no LD_LIBRARY_PATH")?;

    let shim = HostileShim::attach()?;
    let machine = Machine::open(driver.as_ref()).context("simulated machine")?;
    let uuid = machine.config().gpus.first().context("GPU 0")?.uuid_bytes();
    shim.claim_gpu(&uuid)?;
    let (pid, start) = self_identity();
    let process = machine.register(pid, start)?;
    let out_of_memory = |_| anyhow::anyhow!("the driver has no such memory");
    process.create_context(0).map_err(out_of_memory)?;
    process.reserve(0, bytes).map_err(out_of_memory)?;
    process.note_allocation(0x7000_0000_0000, bytes, 0, AllocationKind::Linear);

    match mode.as_str() {
        "zero" => shim.used(0)?,
        "wrap" => {
            shim.used(u64::MAX - 1)?;
            shim.gpu(offset_of!(GpuLine, used) + 8, 5)?;
            shim.gpu(offset_of!(GpuLine, peak), u64::MAX)?;
            shim.gpu(offset_of!(GpuLine, inflight), u64::MAX)?;
            shim.gpu(offset_of!(GpuLine, allocs), 3)?;
            shim.gpu(offset_of!(GpuLine, frees), u64::MAX)?;
            shim.kernels(u64::MAX)?;
        }
        "falling" => {
            shim.used(bytes)?;
            shim.kernels(1_000_000)?;
            std::thread::sleep(std::time::Duration::from_millis(300));
            shim.used(bytes / 2)?;
            shim.gpu(offset_of!(GpuLine, peak), 1)?;
            shim.kernels(3)?;
        }
        "truncate" => shim.ledger.set_len(0).or_else(|error| {
            // A sealed ledger cannot be cut: even better.
            println!("SEALED {error}");
            Ok::<(), std::io::Error>(())
        })?,
        other => bail!("unknown mode {other}"),
    }
    println!("READY {pid}");
    loop {
        std::thread::park();
    }
}
