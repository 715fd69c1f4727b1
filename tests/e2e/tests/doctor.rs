//! `aegis doctor`: what works, what is degraded, what to do.

use anyhow::Result;
use e2e::{GIB, Setup, World};

#[test]
fn a_healthy_machine_has_nothing_that_failed() -> Result<()> {
    let world = World::start(Setup::gpus(2, 16 * GIB))?;
    let answer = world.run(["doctor"])?;
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(
        answer.stdout.to_lowercase().contains("gpm"),
        "names the telemetry tier: {answer:?}"
    );
    assert!(
        answer.stdout.to_lowercase().contains("rootless"),
        "{answer:?}"
    );
    Ok(())
}

#[test]
fn without_a_daemon_it_says_so_and_what_to_do() -> Result<()> {
    let world = World::prepare(Setup::gpus(1, 16 * GIB))?;
    let answer = world.run(["doctor"])?;
    assert_ne!(answer.code, 0, "{answer:?}");
    let text = answer.stdout + &answer.stderr;
    assert!(text.contains("aegisd"), "{text}");
    Ok(())
}

#[test]
fn a_missing_nvml_is_found() -> Result<()> {
    let setup =
        Setup::gpus(1, 16 * GIB).key("telemetry.nvml_library", "\"/nowhere/libnvidia-ml.so.1\"");
    let world = World::start(setup)?;
    let answer = world.run(["doctor"])?;
    assert_ne!(answer.code, 0, "{answer:?}");
    let text = answer.stdout + &answer.stderr;
    assert!(text.contains("/nowhere/libnvidia-ml.so.1"), "{text}");
    Ok(())
}

#[test]
fn coarser_telemetry_is_shown_as_degraded() -> Result<()> {
    let setup = Setup::gpus(1, 16 * GIB).each_gpu(|gpu| gpu.supports_gpm = false);
    let world = World::start(setup)?;
    let gpus = world.gpus()?;
    assert_eq!(gpus[0].tier, aegis_common::policy::Tier::Utilisation);
    let answer = world.run(["doctor"])?;
    assert!(
        answer.stdout.to_lowercase().contains("utilisation"),
        "{answer:?}"
    );
    Ok(())
}
