//! Tests of the time line: evaluation at chosen times, so nothing depends on the machine's speed.

use crate::kernel::Cost;
use crate::share::{Demand, slowdowns};
use crate::{Machine, MachineConfig, now_ns, self_identity};

const MS: u64 = 1_000_000;
const HOUR: u64 = 3_600_000 * MS;

fn machine(directory: &tempfile::TempDir) -> Machine {
    Machine::create(directory.path(), &MachineConfig::uniform(1, 1 << 35)).unwrap()
}

/// Two registrations that count as alive: the same pid with its own start time, and another.
fn two(machine: &Machine) -> [crate::Process<'_>; 2] {
    let (pid, started) = self_identity();
    let parent = std::os::unix::process::parent_id();
    let parent_started = crate::start_time(parent).unwrap();
    [
        machine.register(pid, started).unwrap(),
        machine.register(parent, parent_started).unwrap(),
    ]
}

fn evaluate(machine: &Machine, now: u64) {
    let _guard = machine.state().gpus[0].lock.lock();
    machine.evaluate(0, now);
}

#[test]
fn a_lone_process_runs_at_full_speed_and_idle_time_is_not_credited() {
    let directory = tempfile::tempdir().unwrap();
    let machine = machine(&directory);
    let [a, _] = two(&machine);
    let cost = Cost::new(100 * MS, 800, 400, 300);
    let first = a.push(0, &cost);
    let started = a
        .queue(0)
        .started_ns
        .load(std::sync::atomic::Ordering::Relaxed);
    evaluate(&machine, started + 40 * MS);
    assert_eq!(
        a.queue(0)
            .done
            .completed
            .load(std::sync::atomic::Ordering::Relaxed),
        40 * MS
    );
    evaluate(&machine, started + HOUR);
    let usage = machine.gpu_usage_now(0);
    assert_eq!(usage.busy_ns, 100 * MS);
    assert_eq!(usage.sm_active, 100 * MS * 800);
    assert_eq!(usage.sm_occupancy, 100 * MS * 400);
    assert_eq!(usage.dram_active, 100 * MS * 300);
    assert_eq!(a.queue(0).time_of(first), Some(started + 100 * MS));
}

#[test]
fn times_of_long_past_positions_are_known_however_often_it_was_evaluated() {
    let directory = tempfile::tempdir().unwrap();
    let machine = machine(&directory);
    let [a, _] = two(&machine);
    let early = a.push(0, &Cost::new(MS, 500, 500, 500));
    a.push(0, &Cost::new(5000 * MS, 500, 500, 500));
    let started = a
        .queue(0)
        .started_ns
        .load(std::sync::atomic::Ordering::Relaxed);
    for step in 1..5000 {
        evaluate(&machine, started + step * MS);
    }
    assert_eq!(a.queue(0).time_of(early), Some(started + MS));
}

#[test]
fn two_processes_slow_each_other_as_the_formula_says() {
    let directory = tempfile::tempdir().unwrap();
    let machine = machine(&directory);
    let [a, b] = two(&machine);
    a.reserve(0, 1 << 34).unwrap();
    b.reserve(0, 1 << 31).unwrap();
    let (heavy, light) = (
        Cost::new(100 * MS, 950, 500, 600),
        Cost::new(100 * MS, 400, 200, 200),
    );
    a.push(0, &heavy);
    b.push(0, &light);
    // As if both had started at one moment.
    let start = now_ns() + MS;
    for process in [a, b] {
        process
            .queue(0)
            .started_ns
            .store(start, std::sync::atomic::Ordering::Relaxed);
    }
    evaluate(&machine, start + HOUR);
    let demand = |cost: &Cost, memory| Demand {
        sm: f64::from(cost.sm_active) / 1000.0,
        dram: f64::from(cost.dram_active) / 1000.0,
        memory,
    };
    let slow = slowdowns(&[demand(&heavy, 0.5), demand(&light, 1.0 / 16.0)]);
    let busy = |p: crate::Process<'_>| {
        p.queue(0)
            .done
            .busy_ns
            .load(std::sync::atomic::Ordering::Relaxed) as f64
    };
    // The heavy one is done first; the rest of the light one then runs alone.
    let heavy_wall = 100.0 * MS as f64 * slow[0];
    let light_wall = heavy_wall + (100.0 * MS as f64 - heavy_wall / slow[1]);
    assert!(
        (busy(a) - heavy_wall).abs() < 10.0,
        "{} {heavy_wall}",
        busy(a)
    );
    assert!(
        (busy(b) - light_wall).abs() < 10.0,
        "{} {light_wall}",
        busy(b)
    );
    assert!(slow[1] > slow[0] && busy(b) > busy(a));
}

#[test]
fn a_hung_process_makes_no_progress_and_does_not_slow_others() {
    let directory = tempfile::tempdir().unwrap();
    let machine = machine(&directory);
    let [a, b] = two(&machine);
    a.push(0, &Cost::new(10 * MS, 900, 500, 500));
    let position = b.push(0, &Cost::new(10 * MS, 900, 500, 500));
    assert!(machine.faults().set_hung(a.pid(), true));
    evaluate(&machine, now_ns() + HOUR);
    assert_eq!(a.queue(0).pending(), 10 * MS);
    assert!(b.is_done(0, position));
    assert!(!machine.faults().set_hung(1_999_999_999, true));
}

#[test]
fn time_scale_scales_durations() {
    let directory = tempfile::tempdir().unwrap();
    let config = MachineConfig {
        time_scale: 0.01,
        ..MachineConfig::default()
    };
    let machine = Machine::create(directory.path(), &config).unwrap();
    let [a, _] = two(&machine);
    assert_eq!(a.push(0, &Cost::new(100 * MS, 1, 1, 1)), MS);
}

#[test]
fn waiting_ends_when_the_work_is_done() {
    let directory = tempfile::tempdir().unwrap();
    let machine = machine(&directory);
    let [a, b] = two(&machine);
    let other = b.push(0, &Cost::new(3 * MS, 500, 300, 300));
    let own = a.push(0, &Cost::new(5 * MS, 500, 300, 300));
    a.wait(0, own);
    assert!(a.is_done(0, own));
    b.wait(0, other);
    let times = (a.time_of(0, own), b.time_of(0, other));
    assert!(times.0 <= now_ns() && times.1 <= times.0, "{times:?}");
}

#[test]
fn the_mutex_survives_an_owner_that_dies_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let machine = machine(&directory);
    std::thread::scope(|scope| {
        scope.spawn(|| std::mem::forget(machine.state().lock.lock()));
    });
    // The kernel marks it when the thread is gone, as it does when a process is killed.
    drop(machine.state().lock.lock());
    assert!(machine.state().lock.try_lock().is_some());
}
