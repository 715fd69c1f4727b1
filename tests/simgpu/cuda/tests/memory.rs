//! Device memory through the exported functions.

mod ffi;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use ffi::{Driver, Fixture};
use simgpu_core::config::MIB;
use simgpu_core::fault::Fault;
use simgpu_core::{MachineConfig, process_alive, start_time};

const MIB_USIZE: usize = 1 << 20;
const CONTEXT: u64 = 300 * MIB;

fn fixture(gpus: usize) -> Fixture {
    let config = MachineConfig {
        zero_duration: true,
        ..MachineConfig::uniform(gpus, 8192 * MIB)
    };
    Fixture::new(&config)
}

#[test]
fn a_context_and_allocations_take_whole_blocks() {
    let fixture = fixture(1);
    let driver = fixture.ready();
    let used = || fixture.machine.gpu_usage()[0].used - CONTEXT;
    assert_eq!(used(), 0);
    let small: Vec<u64> = (0..4).map(|_| driver.allocate(1000).unwrap()).collect();
    assert_eq!(used(), 2 * MIB);
    let large = driver.allocate(3 * MIB_USIZE).unwrap();
    assert_eq!(used(), 6 * MIB);
    let (free, total) = driver.memory().unwrap();
    assert_eq!(
        total as u64,
        fixture.machine.config().gpus[0].usable_bytes()
    );
    assert_eq!(free as u64, total as u64 - CONTEXT - 6 * MIB);
    let listed = &fixture.machine.processes()[0];
    assert_eq!(
        (listed.allocations.len(), listed.pid),
        (5, std::process::id())
    );
    for pointer in small.into_iter().chain([large]) {
        driver.free(pointer).unwrap();
    }
    assert_eq!(used(), 0);
    assert_eq!(driver.free(large), Err(1));
    assert_eq!(driver.allocate(0), Err(1));
}

#[test]
fn out_of_memory_leaves_everything_as_it_was() {
    let fixture = fixture(1);
    let driver = fixture.ready();
    let held = driver.allocate(6 << 30).unwrap();
    let before = driver.memory().unwrap();
    assert_eq!(driver.allocate(6 << 30), Err(2));
    assert_eq!(driver.allocate(usize::MAX), Err(2));
    assert_eq!(driver.memory().unwrap(), before);
    driver.free(held).unwrap();
    driver.allocate(6 << 30).unwrap();
    fixture
        .machine
        .faults()
        .arm(Fault::nth_allocation(2, 2))
        .unwrap();
    assert!(driver.allocate(8).is_ok());
    assert_eq!(driver.allocate(8), Err(2));
    assert!(driver.allocate(8).is_ok());
    let records = fixture.machine.journal().unwrap();
    let failed: Vec<_> = records
        .iter()
        .filter(|r| r.call == "cuMemAlloc_v2" && r.result == 2)
        .collect();
    assert_eq!(failed.len(), 3);
    assert_eq!(failed[0].args, format!("bytes={}", 6u64 << 30));
    assert_eq!(failed[0].free, Some(before.0 as u64));
}

#[test]
fn data_comes_back() {
    let fixture = fixture(1);
    let driver = fixture.ready();
    let data: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
    let (a, b) = (
        driver.allocate(data.len()).unwrap(),
        driver.allocate(4 * MIB_USIZE).unwrap(),
    );
    driver.copy_in(a, &data).unwrap();
    driver.copy_within(b + 77, a, data.len()).unwrap();
    assert_eq!(driver.copy_out(b + 77, data.len()).unwrap(), data);
    driver.fill(b + 100, 7, 5000).unwrap();
    assert_eq!(driver.copy_out(b + 99, 3).unwrap(), [data[22], 7, 7]);
    driver.fill(b, 0, 4 * MIB_USIZE).unwrap();
    assert_eq!(
        driver.copy_out(b, 4 * MIB_USIZE).unwrap(),
        vec![0; 4 * MIB_USIZE]
    );
    // Outside of an allocation.
    assert_eq!(driver.copy_in(b + 4 * MIB - 1, &[1, 2]), Err(1));
    assert_eq!(driver.fill(0x2000_7000_0000, 1, 1), Err(1));
    let counted = &fixture.machine.processes()[0];
    assert_eq!((counted.copies, counted.memsets), (5, 2));
}

#[test]
fn physical_memory_can_be_mapped_elsewhere_and_lives_while_mapped() {
    let fixture = fixture(1);
    let driver = fixture.ready();
    let bytes = 4 * MIB_USIZE;
    let used = || fixture.machine.gpu_usage()[0].used - CONTEXT;
    let (first, second) = (
        driver.reserve_addresses(bytes).unwrap(),
        driver.reserve_addresses(bytes).unwrap(),
    );
    assert_eq!(driver.copy_in(first, b"x"), Err(1));
    assert_eq!(driver.create_physical(100), Err(1));
    let handle = driver.create_physical(bytes).unwrap();
    assert_eq!(used(), bytes as u64);
    driver.map(first, bytes, handle).unwrap();
    assert_eq!(driver.map(first, bytes, handle), Err(1));
    driver.copy_in(first + 5, b"kept").unwrap();
    driver.map(second, bytes, handle).unwrap();
    assert_eq!(driver.copy_out(second + 5, 4).unwrap(), b"kept");
    driver.release_physical(handle).unwrap();
    driver.unmap(first, bytes).unwrap();
    assert_eq!(used(), bytes as u64);
    assert_eq!(driver.copy_out(second + 5, 4).unwrap(), b"kept");
    assert_eq!(driver.free_addresses(second, bytes), Err(1));
    driver.unmap(second, bytes).unwrap();
    assert_eq!(used(), 0);
    driver.free_addresses(first, bytes).unwrap();
    driver.free_addresses(second, bytes).unwrap();
    // Fresh physical memory is zero.
    let again = driver.create_physical(bytes).unwrap();
    let base = driver.reserve_addresses(bytes).unwrap();
    driver.map(base, bytes, again).unwrap();
    assert_eq!(driver.copy_out(base, 16).unwrap(), [0; 16]);
}

#[test]
fn a_pool_keeps_freed_memory_until_it_is_synchronised() {
    let fixture = fixture(1);
    let driver = fixture.ready();
    let used = || fixture.machine.gpu_usage()[0].used - CONTEXT;
    let pointer = driver.allocate_async(3 * MIB_USIZE, 0).unwrap();
    // 5 reserved, 7 used.
    assert_eq!(driver.pool_attribute(5).unwrap(), 4 * MIB);
    assert_eq!(driver.pool_attribute(7).unwrap(), 3 * MIB);
    driver.free_async(pointer, 0).unwrap();
    assert_eq!((used(), driver.pool_attribute(7).unwrap()), (4 * MIB, 0));
    driver.synchronise().unwrap();
    assert_eq!((used(), driver.pool_attribute(5).unwrap()), (0, 0));
}

#[test]
fn contexts_take_their_memory_along() {
    let fixture = fixture(2);
    let driver = fixture.driver();
    assert_eq!(driver.allocate(8), Err(3));
    driver.init().unwrap();
    assert_eq!(driver.allocate(8), Err(201));
    let primary = driver.retain_primary(1).unwrap();
    assert_eq!(driver.retain_primary(1).unwrap(), primary);
    driver.set_current(primary).unwrap();
    driver.allocate(100 * MIB_USIZE).unwrap();
    let used = || {
        fixture
            .machine
            .gpu_usage()
            .iter()
            .map(|g| g.used)
            .collect::<Vec<_>>()
    };
    assert_eq!(used(), [0, CONTEXT + 100 * MIB]);
    driver.release_primary(1).unwrap();
    assert_eq!(used(), [0, CONTEXT + 100 * MIB]);
    driver.release_primary(1).unwrap();
    assert_eq!(used(), [0, 0]);
    assert_eq!(driver.allocate(8), Err(201));
    let created = driver.create_context(0).unwrap();
    assert_eq!(driver.current().unwrap(), created);
    driver.destroy_context(created).unwrap();
    assert_eq!(driver.destroy_context(created), Err(201));
}

/// Not a test of its own: the process that `memory_of_a_killed_process_returns` kills.
#[test]
#[ignore = "run by memory_of_a_killed_process_returns"]
fn child_that_holds_memory() {
    let Some(library) = std::env::var_os("SIMGPU_TEST_LIBRARY") else {
        return;
    };
    let driver = Driver::open(library.as_ref());
    driver.init().unwrap();
    driver.create_context(0).unwrap();
    driver.allocate(6 << 30).unwrap();
    writeln!(std::io::stderr(), "holding").unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn memory_of_a_killed_process_returns() {
    let fixture = fixture(1);
    let driver = fixture.ready();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "child_that_holds_memory",
            "--ignored",
            "--nocapture",
        ])
        .env(
            "SIMGPU_TEST_LIBRARY",
            fixture.directory.path().join("libcuda.so.1"),
        )
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stderr.take().unwrap());
    assert!(output.lines().any(|line| line.unwrap().contains("holding")));
    assert_eq!(driver.allocate(4 << 30), Err(2));
    let started = start_time(child.id()).unwrap();
    child.kill().unwrap();
    while process_alive(child.id(), started) {
        std::thread::yield_now();
    }
    driver.allocate(4 << 30).unwrap();
    child.wait().unwrap();
}
