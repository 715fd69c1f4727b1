//! `aegis gpus`: memory as NVML and the daemon's promises have it, agreeing with the simulator.

use std::cell::Cell;

use aegis_common::event::Link;
use anyhow::Result;
use e2e::{GIB, MIB, Setup, World};

#[test]
fn an_idle_machine_is_all_available_but_the_guard() -> Result<()> {
    let world = World::start(Setup::gpus(2, 16 * GIB))?;
    let gpus = e2e::until("first samples", || {
        let gpus = world.gpus()?;
        let sampled = gpus.len() == 2 && gpus.iter().all(|g| g.used.is_some());
        Ok(sampled.then_some(gpus))
    })?;
    assert_eq!(gpus.len(), 2);
    for gpu in gpus {
        assert_eq!(gpu.memory, 16 * GIB);
        assert!(gpu.residents.is_empty() && gpu.foreign.is_empty() && !gpu.lost);
        assert_eq!(gpu.promised, 0);
        assert!(gpu.guard >= 512 * MIB);
        assert_eq!(
            gpu.available,
            gpu.memory - gpu.unmanaged - gpu.guard,
            "{gpu:?}"
        );
    }
    Ok(())
}

#[test]
fn a_process_outside_is_shown_and_never_shared_with() -> Result<()> {
    // C14: a rootless daemon shares with nobody it does not know.
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let mut outside = world.outside(&world.workload(&["hold", "3GiB"])).spawn()?;
    let gpu = e2e::until("the foreign process", || {
        let gpu = world.gpus()?.remove(0);
        let held = gpu.foreign.first().map_or(0, |process| process.bytes);
        Ok((held >= 3 * GIB).then_some(gpu))
    })?;
    assert_eq!(gpu.foreign[0].pid, outside.id());
    let job = world.submit(&[], &["true"])?;
    world.blocked(job, "foreign_process")?;
    outside.kill()?;
    outside.wait()?;
    assert_eq!(world.wait(job)?, 0);
    Ok(())
}

#[test]
fn residents_and_use_agree_with_the_simulator() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    let job = world.submit(
        &["--gpu-mem", "5GiB"],
        &world.workload(&["hold", "4GiB", "--launch"]),
    )?;
    world.said(job, 1, "READY")?;
    let gpu = e2e::until("use by NVML", || {
        let gpu = world.gpus()?.remove(0);
        Ok(gpu.used.is_some_and(|used| used >= 4 * GIB).then_some(gpu))
    })?;
    let truth = world.machine.gpu_usage()[0];
    assert_eq!(gpu.residents, [job]);
    let used = gpu.used.unwrap_or_default();
    assert!(used.abs_diff(truth.used) <= GIB, "{used} {truth:?}");
    assert!(
        gpu.promised >= 5 * GIB,
        "the declared peak is promised: {gpu:?}"
    );
    assert!(gpu.promised + gpu.available + gpu.unmanaged + gpu.guard <= gpu.memory);
    Ok(())
}

#[test]
fn links_are_shown_and_a_job_with_two_gpus_gets_those_with_nvlink() -> Result<()> {
    // NVLink between 0 and 3 and between 1 and 2; a PCIe switch above 0 and 1, one above 2 and 3.
    let index = Cell::new(0_u32);
    let setup = Setup::gpus(4, 16 * GIB).each_gpu(|gpu| {
        let number = index.replace(index.get() + 1);
        gpu.nvlink = Some(number.min(3 - number));
        gpu.switch = Some(number / 2);
    });
    let world = World::start(setup)?;
    // A job that fits starts as soon as enough GPUs have been sampled, whichever these are.
    let gpus = e2e::until("samples of all", || {
        let gpus = world.gpus()?;
        let sampled = gpus.len() == 4 && gpus.iter().all(|gpu| gpu.used.is_some());
        Ok(sampled.then_some(gpus))
    })?;
    let mut links: Vec<(u32, Link)> = gpus[0].peers.iter().map(|p| (p.gpu.0, p.link)).collect();
    links.sort_unstable();
    let expected = [(1, Link::Switch), (2, Link::HostBridge), (3, Link::NvLink)];
    assert_eq!(links, expected);
    let job = world.submit(&["--gpus", "2"], &["true"])?;
    assert_eq!(world.wait(job)?, 0);
    let placed: Vec<u32> = world.view(job)?.attempts[0]
        .gpus
        .iter()
        .map(|gpu| gpu.0)
        .collect();
    assert_eq!(placed, [0, 3]);
    Ok(())
}
