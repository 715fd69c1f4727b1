//! Launches, streams, events, graphs: GPU time through the exported functions.

mod ffi;

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use ffi::Fixture;
use simgpu_core::MachineConfig;
use simgpu_core::fault::{Fault, FaultKind};
use simgpu_core::kernel::Cost;

const MS: u64 = 1_000_000;

fn work(fixture: &Fixture) -> u64 {
    fixture.machine.timeline().processes[0].gpus[0].work_ns
}

#[test]
fn launches_take_the_time_they_say() {
    let fixture = Fixture::new(&MachineConfig::default());
    let driver = fixture.ready();
    let function = driver.timed();
    let (start, end) = (
        driver.create_event().unwrap(),
        driver.create_event().unwrap(),
    );
    driver.record(start, 0).unwrap();
    for _ in 0..10 {
        driver
            .launch(function, &Cost::new(5 * MS, 900, 400, 300), 0)
            .unwrap();
    }
    driver.record(end, 0).unwrap();
    driver.synchronise().unwrap();
    driver.event_done(end).unwrap();
    assert_eq!(work(&fixture), 50 * MS);
    let usage = &fixture.machine.gpu_usage()[0];
    assert_eq!((usage.busy_ns, usage.sm_active), (50 * MS, 50 * MS * 900));
    assert_eq!(fixture.machine.processes()[0].launches, 10);
    // Alone on the GPU, so the events are as far apart as the work is long, or a little more if
    // the test was interrupted between launches.
    let elapsed = driver.elapsed_ms(start, end).unwrap();
    assert!(elapsed >= 49.9, "{elapsed}");
}

#[test]
fn a_stream_is_busy_until_its_work_is_done() {
    let fixture = Fixture::new(&MachineConfig::default());
    let driver = fixture.ready();
    let function = driver.timed();
    let stream = driver.create_stream().unwrap();
    driver.query(stream).unwrap();
    fixture.machine.faults().set_hung(std::process::id(), true);
    driver
        .launch(function, &Cost::new(MS, 500, 500, 500), stream)
        .unwrap();
    assert_eq!(driver.query(stream), Err(600));
    fixture.machine.faults().set_hung(std::process::id(), false);
    driver.synchronise().unwrap();
    driver.query(stream).unwrap();
    assert_eq!(driver.query(0x1234), Err(400));
}

#[test]
fn names_carry_costs_too() {
    let fixture = Fixture::new(&MachineConfig::default());
    let driver = fixture.ready();
    let image = ".version 7.0\n.target sm_52\n.entry sim_kernel__2000000__800__100() { ret; }\n\0";
    let module = driver.load_module(image).unwrap();
    let function = driver
        .function(module, c"sim_kernel__2000000__800__100")
        .unwrap();
    assert_eq!(driver.function(module, c"other"), Err(500));
    assert_eq!(driver.load_module("no image\0"), Err(200));
    driver.launch(function, &Cost::default(), 0).unwrap();
    driver.synchronise().unwrap();
    assert_eq!(work(&fixture), 2 * MS);
}

extern "C" fn count(data: *mut c_void) {
    // The address of a static, as the test passes it.
    assert!(!data.is_null());
    CALLED.fetch_add(1, SeqCst);
}

static CALLED: AtomicU32 = AtomicU32::new(0);

#[test]
fn host_functions_run_after_the_work_before_them() {
    let fixture = Fixture::new(&MachineConfig::default());
    let driver = fixture.ready();
    let function = driver.timed();
    fixture.machine.faults().set_hung(std::process::id(), true);
    driver
        .launch(function, &Cost::new(MS, 500, 500, 500), 0)
        .unwrap();
    driver
        .host_function(0, count, (&raw const CALLED).cast_mut().cast())
        .unwrap();
    assert_eq!(CALLED.load(SeqCst), 0);
    fixture.machine.faults().set_hung(std::process::id(), false);
    driver.synchronise().unwrap();
    assert_eq!(CALLED.load(SeqCst), 1);
}

#[test]
fn a_captured_sequence_replays_as_time_and_data() {
    let fixture = Fixture::new(&MachineConfig::default());
    let driver = fixture.ready();
    let function = driver.timed();
    let stream = driver.create_stream().unwrap();
    driver.begin_capture(stream).unwrap();
    for _ in 0..3 {
        driver
            .launch(function, &Cost::new(MS, 500, 500, 500), stream)
            .unwrap();
    }
    assert_eq!(driver.query(stream), Err(900));
    let graph = driver.end_capture(stream).unwrap();
    driver.synchronise().unwrap();
    assert_eq!(work(&fixture), 0);
    let executable = driver.instantiate(graph).unwrap();
    driver.launch_graph(executable, stream).unwrap();
    driver.launch_graph(executable, stream).unwrap();
    driver.synchronise().unwrap();
    assert_eq!(work(&fixture), 6 * MS);
    let counted = &fixture.machine.processes()[0];
    assert_eq!((counted.launches, counted.graph_launches), (0, 2));
}

#[test]
fn zero_duration_counts_launches_and_captures_still_work() {
    let fixture = Fixture::new(&MachineConfig {
        zero_duration: true,
        ..MachineConfig::default()
    });
    let driver = fixture.ready();
    let function = driver.timed();
    driver.time_launches(function, 1000);
    let stream = driver.create_stream().unwrap();
    driver.begin_capture(stream).unwrap();
    driver
        .launch(function, &Cost::new(MS, 500, 500, 500), stream)
        .unwrap();
    driver.end_capture(stream).unwrap();
    driver
        .launch(function, &Cost::new(1 << 60, 500, 500, 500), 0)
        .unwrap();
    driver.synchronise().unwrap();
    assert_eq!(fixture.machine.processes()[0].launches, 1001);
    fixture
        .machine
        .faults()
        .arm(Fault::new(FaultKind::Launch, 719))
        .unwrap();
    assert_eq!(driver.launch(function, &Cost::default(), 0), Err(719));
    fixture.machine.faults().clear();
    driver.launch(function, &Cost::default(), 0).unwrap();
    assert_eq!(driver.launch(0xdead, &Cost::default(), 0), Err(400));
}
