//! Device memory: capacity, release of dead processes, the ledger.

use std::process::{Child, Command, Stdio};
use std::sync::Barrier;

use simgpu_core::config::MIB;
use simgpu_core::fault::{Fault, FaultKind};
use simgpu_core::{
    AllocationKind, Error, Machine, MachineConfig, Process, process_alive, start_time,
};

const GIB: u64 = 1024 * MIB;

fn machine(directory: &tempfile::TempDir) -> Machine {
    let mut config = MachineConfig::uniform(2, 8 * GIB);
    config.gpus[0].reserved_bytes = 512 * MIB;
    Machine::create(directory.path(), &config).unwrap()
}

/// A process that lives until it is killed.
fn sleeper() -> Child {
    Command::new("sleep")
        .arg("1000")
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

fn register<'m>(machine: &'m Machine, child: &Child) -> Process<'m> {
    machine
        .register(child.id(), start_time(child.id()).unwrap())
        .unwrap()
}

#[test]
fn memory_of_a_killed_process_is_free_at_once_for_readers_and_allocators() {
    let directory = tempfile::tempdir().unwrap();
    let machine = machine(&directory);
    let (mut first, mut second) = (sleeper(), sleeper());
    let (a, b) = (register(&machine, &first), register(&machine, &second));
    a.create_context(0).unwrap();
    a.reserve(0, 6 * GIB).unwrap();
    a.note_allocation(0x1000, 6 * GIB, 0, AllocationKind::Linear);
    let error = b.reserve(0, 4 * GIB).unwrap_err();
    assert_eq!(error.free, 8 * GIB - 512 * MIB - 300 * MIB - 6 * GIB);

    // Killed, not waited for: it stays a zombie until `wait`, which holds no device memory.
    first.kill().unwrap();
    let (pid, started) = (a.pid(), a.start_time());
    while process_alive(pid, started) {
        std::thread::yield_now();
    }
    b.reserve(0, 4 * GIB).unwrap();
    let usage = machine.gpu_usage();
    assert_eq!((usage[0].used, usage[1].used), (4 * GIB, 0));
    let pids: Vec<u32> = machine.processes().iter().map(|p| p.pid).collect();
    assert_eq!(pids, [second.id()]);
    let remembered = machine.timeline().processes;
    let dead = remembered.iter().find(|p| p.pid == pid).unwrap();
    assert!(!dead.alive && dead.allocations.is_empty());
    assert_eq!(dead.gpus[0].peak_bytes, 6 * GIB + 300 * MIB);

    second.kill().unwrap();
    first.wait().unwrap();
    second.wait().unwrap();
    assert_eq!(machine.gpu_usage()[0].used, 0);
}

#[test]
fn racing_allocators_never_exceed_the_capacity() {
    let directory = tempfile::tempdir().unwrap();
    let made = machine(&directory);
    let opened = Machine::open(directory.path()).unwrap();
    let mut children = [sleeper(), sleeper()];
    let processes = [
        register(&made, &children[0]),
        register(&opened, &children[1]),
    ];
    let usable = made.config().gpus[0].usable_bytes();
    let start = Barrier::new(4);
    let held: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|index| {
                let (process, start) = (&processes[index % 2], &start);
                scope.spawn(move || {
                    start.wait();
                    let mut held = 0;
                    for round in 0..2000u64 {
                        if round % 3 == 2 && held > 0 {
                            process.unreserve(0, 64 * MIB);
                            held -= 64 * MIB;
                        } else if let Ok(left) = process.reserve(0, 64 * MIB) {
                            assert!(left <= usable);
                            held += 64 * MIB;
                        }
                    }
                    held
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    let usage = made.gpu_usage()[0];
    assert_eq!(usage.used, held);
    assert!(usage.used <= usable && usage.used + usage.free == usable);
    for child in &mut children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn the_ledger_lists_live_allocations() {
    let directory = tempfile::tempdir().unwrap();
    let machine = machine(&directory);
    let process = machine
        .register(std::process::id(), start_time(std::process::id()).unwrap())
        .unwrap();
    process.reserve(1, 2 * MIB).unwrap();
    process.note_allocation(7, 100, 1, AllocationKind::Pool);
    process.note_allocation(8, 200, 1, AllocationKind::Managed);
    process.forget_allocation(7);
    let seen = Machine::open(directory.path()).unwrap().processes();
    let listed = &seen[0].allocations;
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (listed[0].handle, listed[0].bytes, listed[0].gpu),
        (8, 200, 1)
    );
    assert_eq!(listed[0].kind, AllocationKind::Managed);
}

#[test]
fn foreign_memory_is_taken_from_all() {
    let directory = tempfile::tempdir().unwrap();
    let machine = machine(&directory);
    let process = machine
        .register(std::process::id(), start_time(std::process::id()).unwrap())
        .unwrap();
    machine.faults().set_foreign(4_000_000, 0, 7 * GIB).unwrap();
    assert_eq!(process.reserve(0, GIB).unwrap_err().free, 512 * MIB);
    assert!(
        machine
            .processes()
            .iter()
            .any(|p| p.foreign && p.pid == 4_000_000)
    );
    machine.faults().set_foreign(4_000_000, 0, 0).unwrap();
    process.reserve(0, GIB).unwrap();
    assert!(matches!(
        machine.faults().set_foreign(1, 9, 1),
        Err(Error::NoGpu(9))
    ));
}

#[test]
fn the_nth_allocation_fails_once_and_only_where_armed() {
    let directory = tempfile::tempdir().unwrap();
    let machine = machine(&directory);
    let fault = Fault {
        gpu: Some(1),
        pid: Some(11),
        ..Fault::nth_allocation(2, 2)
    };
    machine.faults().arm(fault).unwrap();
    let struck = |pid, gpu| machine.fault(FaultKind::Allocation, pid, Some(gpu));
    assert_eq!(struck(12, 1), None);
    assert_eq!(struck(11, 0), None);
    assert_eq!(
        [struck(11, 1), struck(11, 1), struck(11, 1)],
        [None, Some(2), None]
    );
    machine
        .faults()
        .arm(Fault::new(FaultKind::NvmlInit, 9))
        .unwrap();
    assert_eq!(machine.fault(FaultKind::NvmlInit, 0, None), Some(9));
    machine.faults().clear();
    assert_eq!(machine.fault(FaultKind::NvmlInit, 0, None), None);
}
