//! A ledger with a valid header that lies neither crashes nor misleads the daemon.

use anyhow::Result;
use e2e::{GIB, Setup, World, alive};

const HELD: u64 = 6 * GIB;

/// Must show: a hostile ledger with a *valid* header (0 used while holding 6 GiB, wrapping and
/// decreasing counters, truncation) neither crashes nor misleads.
fn lies(mode: &str) -> Result<()> {
    let mut world = World::start(Setup::gpus(1, 12 * GIB))?;
    let hostile = env!("CARGO_BIN_EXE_hostile");
    let job = world.submit(&["--gpu-mem", "7GiB"], &[hostile, mode, &HELD.to_string()])?;
    let pid: u32 = world.said(job, 1, "READY")?.parse()?;
    // NVML's word counts: what is held cannot be promised to others.
    let gpu = e2e::until("the memory is accounted", || {
        let gpu = world.gpus()?.remove(0);
        Ok(gpu.used.is_some_and(|used| used >= HELD).then_some(gpu))
    })?;
    assert!(gpu.available <= 12 * GIB - HELD, "{gpu:?}");
    // Until NVML has named the process, a claim of more than the GPU has counts as all of it, and
    // the reserve for the context comes on top: too much is the safe side.
    assert!(gpu.promised <= gpu.memory + GIB, "{gpu:?}");
    let view = world.view(job)?;
    let holding = view.holdings[0];
    assert!(
        holding.used <= gpu.memory && holding.peak <= gpu.memory,
        "{view:?}"
    );
    let next = world.submit(
        &["--gpu-mem", "7GiB"],
        &world.workload(&["alloc-once", "7GiB"]),
    )?;
    world.blocked(next, "gpu_memory")?;
    if mode == "zero" {
        let warned = e2e::until("a warning", || {
            let inspection = world.inspect(job)?;
            Ok(inspection.processes.into_iter().find_map(|p| p.warning))
        })?;
        assert!(!warned.is_empty());
    } else {
        world.inspect(job)?;
    }
    assert!(world.daemon()?.try_ended()?.is_none(), "the daemon lives");
    assert!(!world.daemon()?.log().contains("panicked"));
    // A new daemon that adopts the ledger survives it, too.
    world.crash_and_restart()?;
    assert!(world.gpus()?[0].available <= 12 * GIB - HELD);
    world.cancel(job)?;
    assert!(!alive(pid));
    assert_eq!(world.wait(next)?, 0);
    Ok(())
}

#[test]
fn nothing_claimed_while_holding_six_gibibytes() -> Result<()> {
    lies("zero")
}

#[test]
fn counters_that_wrap() -> Result<()> {
    lies("wrap")
}

#[test]
fn counters_that_fall() -> Result<()> {
    lies("falling")
}

#[test]
fn a_ledger_cut_short() -> Result<()> {
    lies("truncate")
}

#[test]
fn garbage_on_the_shim_socket_is_dropped() -> Result<()> {
    use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketType};
    let mut world = World::start(Setup::gpus(1, 12 * GIB))?;
    for length in [0, 1, 127, 128, 129, 4096] {
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(world.shim_socket())?)?;
        // The daemon may have hung up already: that is a fine answer.
        let _ = rustix::net::send(&socket, &vec![0x5a; length], SendFlags::NOSIGNAL);
    }
    for text in [
        &b"\0\0\0\x02{}"[..],
        b"\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\x05nulls",
    ] {
        use std::io::Write;
        let mut stream = std::os::unix::net::UnixStream::connect(world.socket())?;
        let _ = stream.write_all(text);
    }
    let job = world.submit(&[], &["true"])?;
    assert_eq!(world.wait(job)?, 0);
    assert!(world.daemon()?.try_ended()?.is_none());
    Ok(())
}
